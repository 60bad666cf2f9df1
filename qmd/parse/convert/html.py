"""
Turns a saved page into Markdown: its article, title and date.

MHTML holds the page beside its images; only the page is read.
"""

from __future__ import annotations

import binascii
import codecs
import email
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from email import policy
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from lxml import etree

from qmd.errors import DamagedFileError
from qmd.parse.convert import html_blocks
from qmd.parse.convert.blocks import Blocks, heading_line
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date
from qmd.parse.decode import decode

#: Parts of an MHTML file that are looked at.
MAX_PARTS = 2000
#: Bytes of JSON about a page that are read.
MAX_JSON = 1_000_000

_SAVED_FROM = re.compile(r"<!--\s*saved from url=\(\d+\)(https?://[^\s<>]{1,2000})")
_SAVED_BY = re.compile(r"\burl:\s*(https?://[^\s<>]{1,2000})")
_DATES = (
    *(
        "article:published_time",
        "datepublished",
        "date",
        "dc.date",
        "dcterms.date",
        "dc.date.issued",
    ),
    *("dcterms.created", "dcterms.issued", "citation_publication_date", "citation_date", "pubdate"),
    *("publishdate", "publish_date", "publication_date", "article.published", "og:published_time"),
)
_TYPES = re.compile(r"(?:Article|Posting|WebPage|Report|Recipe|Event|Book|Course|Product|Thesis)$")


def convert(path: str, data: bytes) -> Converted:
    """
    The article of a page.

    Raises:
        DecodeError: The bytes are no text.
        DamagedFileError: An MHTML file holds no page.
    """
    if is_mhtml(path):
        data, charset, address = _page_of_mhtml(data)
        return convert_page(html_text(data, charset), address)
    return convert_page(html_text(data))


def convert_page(
    text: str, address: str = "", *, pictures: dict[str, str] | None = None
) -> Converted:
    """
    The article of a page whose text is decoded.

    Args:
        address: Where the page was, if that is known; the page may name it, too.
        pictures: For a page that becomes a note: as for `ElementWriter`.
    """
    blocks = Blocks()
    root, warnings = html_tree(text)
    if root is None:
        return blocks.converted()
    # All stay in use to the end: to free an element, lxml climbs to the next one above it in use.
    elements = list(root.iter())
    meta = _Meta(elements)
    # What a page calls its own address may be that of another; a note keeps where it came from.
    stated = (meta.address, address) if pictures is None else (address, meta.address)
    address = next(filter(None, stated), "") or _saved_from(text)
    body = root.find("body")
    article = find_article(root if body is None else body)
    title = meta.title(root)
    if title and next(_elements(article.root, "h1"), None) is None:
        blocks.markdown(heading_line(1, title))
    base = meta.base or address
    write = partial(
        html_blocks.ElementWriter,
        blocks,
        base=base,
        pictures=pictures,
        has_formulas=pictures is not None and _shows_formulas(elements),
    )
    write(skipped=article.skipped).write(article.root)
    if blocks.is_empty:  # a page of nothing but links
        write().write(article.root)
    return blocks.converted(
        title=title,
        date=meta.date(),
        properties={
            "author": meta.author(),
            "description": meta.named("og:description", "description", "twitter:description"),
            "source": address,
        },
        warnings=warnings,
    )


def _shows_formulas(elements: Iterable[html_blocks.Element]) -> bool:
    """Whether a page loads what makes formulas of ``\\(…\\)`` in its text."""
    scripts = (each for each in elements if html_blocks.local_name(each) == "script")
    return any(
        name in f"{each.get('src')} {each.text}"
        for each in scripts
        for name in ("mathjax", "MathJax", "katex", "renderMathInElement")
    )


class _Meta:
    """What a page says about itself, in JSON-LD and in ``<meta>``."""

    def __init__(self, elements: Iterable[html_blocks.Element]) -> None:
        self._names: dict[str, str] = {}
        self._json: list[Mapping[str, object]] = []
        self._title = self._time = self._canonical = self.base = ""
        for element in elements:
            self._add(element)
        self.address = self._canonical or _web_address(self.named("og:url"))

    def _add(self, element: html_blocks.Element) -> None:
        name = html_blocks.local_name(element)
        if name == "meta":
            self._add_name(element)
        elif name == "title":
            self._title = self._title or _line(element)
        elif name == "base":
            self.base = self.base or _web_address(element.get("href"))
        elif name == "link" and element.get("rel") == "canonical":
            self._canonical = _web_address(element.get("href"))
        elif name == "script" and element.get("type") == "application/ld+json":
            self._json += islice(_json_of(element.text or ""), 200)
        elif element.get("itemprop") == "datePublished":
            self._time = element.get("datetime") or element.get("content") or self._time

    def _add_name(self, element: html_blocks.Element) -> None:
        name = element.get("property") or element.get("name") or element.get("itemprop") or ""
        content = " ".join((element.get("content") or "").split())
        if name and content and len(content) < 5000:
            self._names.setdefault(name.lower(), content)

    def named(self, *names: str) -> str:
        """The content of the first of these that the page has."""
        return next((self._names[name] for name in names if self._names.get(name)), "")

    def title(self, root: html_blocks.Element) -> str:
        """The page's title: its main heading if its ``<title>`` repeats that, else what it says."""
        headings = [_line(each) for each in islice(_elements(root, "h1"), 5)]
        headings = [heading for heading in headings if heading]
        stated = self._from_json("headline") or self.named("og:title", "citation_title", "dc.title")
        for heading in headings:
            if heading and (heading in self._title or heading in stated):
                return heading
        if stated:
            return stated
        if not self._title and len(headings) == 1:
            return headings[0]
        return self._title

    def date(self) -> str | None:
        """When the page was published, if it says so; nothing is guessed."""
        for value in (self._from_json("datePublished"), self.named(*_DATES), self._time):
            date = read_date(value)[0] if value else None
            if date is not None:
                return date
        return None

    def author(self) -> str:
        author = self.named("author", "dc.creator") or self._from_json("author")
        author = author or self.named("article:author")
        return "" if _web_address(author) else author

    def _from_json(self, key: str) -> str:
        for each in self._json:
            kinds = each.get("@type")
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if any(isinstance(kind, str) and _TYPES.search(kind) for kind in kinds):
                value = _name_in_json(each.get(key))
                if value:
                    return value
        return ""


def _name_in_json(value: object) -> str:
    """A text, or the names of the things in a list."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_name_in_json, value[:10])))
    if isinstance(value, dict):
        value = value.get("name")
    return " ".join(value.split()) if isinstance(value, str) else ""


def _json_of(text: str) -> Iterator[Mapping[str, object]]:
    """The things that JSON-LD describes; nothing if it cannot be read."""
    if len(text) > MAX_JSON:
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            graph = each.get("@graph")
            yield each
            yield from (
                (part for part in graph if isinstance(part, dict))
                if isinstance(graph, list)
                else ()
            )


def _elements(root: html_blocks.Element, name: str) -> Iterator[html_blocks.Element]:
    return (element for element in root.iter() if html_blocks.local_name(element) == name)


def _line(element: html_blocks.Element) -> str:
    return " ".join("".join(islice(element.itertext(), 200)).split())[:1000].rstrip("¶#").strip()


def _web_address(address: str | None) -> str:
    address = (address or "").strip()
    return address if re.match(r"https?://[^\s<>]{1,2000}$", address) else ""


def _saved_from(text: str) -> str:
    """Where a browser says it saved a page from; savers of single files write it, too."""
    head = text[:4096]
    match = _SAVED_FROM.search(head) or _SAVED_BY.search(head)
    return match[1] if match else ""


def page_to_save(
    name: str, data: bytes, charset: str, address: str, pictures: dict[str, str]
) -> tuple[Converted, dict[str, bytes]]:
    """
    A page as it becomes a note, and the pictures that its file holds, by their sources.

    Args:
        name: Of the file; its suffix says if it is MHTML.
        charset, address: As the server says; "" if nobody does.
        pictures: As for `convert_page`.

    Raises: As `convert`.
    """
    held: dict[str, bytes] = {}
    parts: Mapping[str, bytes] = {}
    if is_mhtml(name):
        parts = _parts_of_mhtml(data)
        data, charset, address = _page_of_mhtml(data)
    converted = convert_page(html_text(data, charset), address, pictures=pictures)
    for source, target in pictures.items():
        picture = parts.get(target) or _inline_picture(source)
        if picture:
            held[source] = picture
    return converted, held


def plain_page_to_save(job: Any) -> dict[str, Any]:
    """`page_to_save` in a worker: the job and the answer are plain values."""
    name, data, charset, address, pictures = job
    page, held = page_to_save(name, data, charset, address, pictures)
    facts = {each: page.properties.get(each) for each in ("author", "description", "source")}
    return {
        "title": page.title,
        "date": page.date,
        "text": page.markdown,
        "pictures": pictures,
        "held": held,
        **facts,
    }


def is_mhtml(name: str) -> bool:
    """Whether the name of a file is that of a page with its pictures in one file."""
    return name.lower().endswith((".mhtml", ".mht"))


def _inline_picture(source: str) -> bytes | None:
    """The bytes of a picture whose source is a ``data:`` address in Base64."""
    head, comma, content = source.partition(",")
    if not (comma and head.startswith("data:image/") and head.endswith(";base64")):
        return None
    try:
        return binascii.a2b_base64(unquote(content))
    except ValueError:
        return None


def _parts_of_mhtml(data: bytes) -> dict[str, bytes]:
    """The pictures of an MHTML file, by their addresses."""
    message = email.message_from_bytes(data, policy=policy.compat32)
    parts: dict[str, bytes] = {}
    for part in islice(message.walk(), MAX_PARTS):
        payload = None
        if part.get_content_maintype() == "image":
            payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            parts.setdefault(str(part.get("Content-Location") or "").strip(), payload)
            parts.setdefault("cid:" + str(part.get("Content-ID") or "").strip("<> "), payload)
    return parts


def _page_of_mhtml(data: bytes) -> tuple[bytes, str, str]:
    """The bytes of the page, its encoding and its address."""
    message = email.message_from_bytes(data, policy=policy.compat32)
    for part in islice(message.walk(), MAX_PARTS):
        if part.get_content_type() in ("text/html", "application/xhtml+xml"):
            payload = part.get_payload(decode=True)
            address = _web_address(str(part.get("Content-Location") or ""))
            if isinstance(payload, bytes):
                return payload, part.get_content_charset("") or "", address
    raise DamagedFileError(
        "The file is no saved page: it holds no HTML.",
        hint="Save the page again, or leave the file out.",
    )


# --- the tree of a page -----------------------------------------------------------------

_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w:.-]{2,40})|<\?xml[^>]{0,100}encoding=[\"']([\w:.-]{2,40})",
    re.IGNORECASE,
)
_OF_HEAD = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
#: What pages call an encoding, and the larger one that browsers read it as.
_READ_AS = {
    "gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252",
    "ascii": "cp1252", "us-ascii": "cp1252", "shift_jis": "cp932", "big5": "big5hkscs",
    "ks_c_5601-1987": "cp949", "euc-kr": "cp949",
}  # fmt: skip


def html_text(data: bytes, charset: str = "") -> str:
    """
    The text of an HTML file: in the encoding that it names if it is in it, else in a detected one.

    Args:
        charset: What else names the encoding, such as the header of a message.

    Raises:
        DecodeError: The bytes are no text.
    """
    if not data.startswith(_BOMS):
        match = _CHARSET.search(data, 0, 4096)
        named = (match[1] or match[2]).decode("ascii", "replace") if match else ""
        for name in (charset, named):
            text = _decoded(data, name)
            if text is not None:
                return text
    return decode(data).text


def html_tree(text: str) -> tuple[html_blocks.Element | None, tuple[str, ...]]:
    """The root of a page's tree, None if it has no elements, and warnings."""
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return None, ()
    if root is not None:
        _complete_body(root)
    too_deep = any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log)
    warnings = ("The page is nested too deeply; a part of it was not read.",) if too_deep else ()
    return root, warnings


def _complete_body(root: html_blocks.Element) -> None:
    """
    Put into ``<body>`` what begins it.

    The parser knows no element of HTML 5, and takes one after the head for a part of it.
    """
    head, body = root.find("head"), root.find("body")
    if head is None:
        return
    begin = next(
        (n for n, each in enumerate(head) if html_blocks.local_name(each) not in _OF_HEAD), None
    )
    if begin is None:
        return
    if body is None:
        body = etree.SubElement(root, "body")
    for place, element in enumerate(head[begin:]):
        body.insert(place, element)


def _decoded(data: bytes, charset: str) -> str | None:
    name = _READ_AS.get(charset.lower(), charset.lower())
    if not name or name.startswith("utf-16"):  # a page that can be read so far is not in UTF-16
        return None
    try:
        if codecs.lookup(name)._is_text_encoding is False:
            return None
        text = data.decode(name)
    except (LookupError, UnicodeError, ValueError):
        return None
    return None if "\0" in text else text


# --- the article of a page --------------------------------------------------------------
# It is what is left without navigation, adverts, heads and feet. A page that says what its article
# is (``<main>``, ``<article>``, the names that generators use) is believed if that holds most of
# the text that is no link. Otherwise the whole page counts. Either way blocks that are mostly
# links, or say that they are navigation, are left out.

_ARTICLE_NAMES = re.compile(
    r"(?:^|\s)(?:main-?content|article-?(?:body|content)|post-?(?:body|content)|entry-?content|"
    r"mw-content-text|markdown-body|js_content|rich_media_content|content|story-?body)(?:$|\s)",
    re.IGNORECASE,
)
_NAVIGATION = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|navheader|navfooter|navbox|sphinxsidebar|breadcrumbs?|"
    r"cookies?|consent|newsletter|noprint|catlinks|pagination|pager)(?:$|[\s_-])",
    re.IGNORECASE,
)
# The links of docutils from a heading back to the table of contents are the text of the heading.
_OTHER_NAMES = re.compile(
    r"(?:^|[\s_-])(?:menu|sidebar|footer|header|shar(?:e|ing)|social|related|advert\w*|ads?|promo|"
    r"subscribe|popup|modal|toc(?!-backref)|skip|jump|banner|toolbar|topbar|masthead|paywall|copyright)(?:$|[\s_-])",
    re.IGNORECASE,
)
_EDIT_LINKS = re.compile(r"(?:^|\s)(?:mw-editsection|headerlink|anchorjs-link)(?:$|\s)")
_OTHER_ROLES = frozenset(
    ("navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "toolbar")
)
_OTHER_ELEMENTS = frozenset(("header", "aside", "form"))
#: Characters of a block that counts as navigation by its name alone.
_SHORT = 300


class _Size(NamedTuple):
    """Characters of an element, and those of links and of code and tables among them."""

    text: int
    links: int
    kept: int
    has_title: bool

    @property
    def prose(self) -> int:
        return self.text - self.links


class Article(NamedTuple):
    """The element that holds an article, and those in it that are left out."""

    root: html_blocks.Element
    skipped: frozenset[html_blocks.Element]


def find_article(page: html_blocks.Element) -> Article:
    """The article of a page."""
    sizes = _sizes(page)
    whole = sizes[page]
    skipped = frozenset(_others(page, sizes))
    kept = whole.kept - sum(sizes[each].kept for each in skipped)
    best = page
    for element in _candidates(page, skipped, sizes):
        size = sizes[element]
        smallest = sizes[best]
        if size.prose * 2 > whole.prose and size.kept * 5 >= kept * 4 and size.text < smallest.text:
            best = element
    return Article(best, skipped)


def _candidates(
    page: html_blocks.Element,
    skipped: frozenset[html_blocks.Element],
    sizes: dict[html_blocks.Element, _Size],
) -> Iterator[html_blocks.Element]:
    for element in _outside(page, skipped, sizes):
        name, attributes = html_blocks.local_name(element), element.attrib
        if (
            name in ("main", "article")
            or attributes.get("role") in ("main", "article")
            or attributes.get("itemprop") == "articleBody"
            or _ARTICLE_NAMES.search(attributes.get("id") or "")
            or _ARTICLE_NAMES.search(attributes.get("class") or "")
        ):
            yield element


def _others(
    page: html_blocks.Element, sizes: dict[html_blocks.Element, _Size]
) -> Iterator[html_blocks.Element]:
    """The outermost elements that are no part of any article."""
    prose = sizes[page].prose
    stack = [page]
    while stack:
        for child in stack.pop():
            size = sizes.get(child)
            if size is None:
                continue
            if _is_other(child, size, prose):
                yield child
            else:
                stack.append(child)


def _is_other(element: html_blocks.Element, size: _Size, prose: int) -> bool:
    name, attributes = html_blocks.local_name(element), element.attrib
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    if _EDIT_LINKS.search(names):
        return True
    is_navigation = (
        name in ("nav", "footer")
        or attributes.get("role") in _OTHER_ROLES
        or _NAVIGATION.search(names) is not None
    )
    if size.has_title:
        return False
    if not is_navigation and name not in _OTHER_ELEMENTS and not _OTHER_NAMES.search(names):
        return False
    return _is_beside_text(size, prose, is_navigation=is_navigation)


def _is_beside_text(size: _Size, prose: int, *, is_navigation: bool) -> bool:
    """Whether what has such a name is little beside the text of its page."""
    is_short = size.text < _SHORT
    is_of_links = size.links * 3 > size.text
    # A name may mislead: what holds much of the text stays. But of a page that is little more than
    # a list of chapters, the links to its neighbours are much of the text.
    if size.prose * 4 > prose and not (is_short and (is_navigation or is_of_links)):
        return False
    return is_navigation or (size.kept * 2 <= size.text and (is_short or is_of_links))


def _outside(
    page: html_blocks.Element,
    skipped: frozenset[html_blocks.Element],
    sizes: dict[html_blocks.Element, _Size],
) -> Iterator[html_blocks.Element]:
    """The elements that are shown, those that are left out excepted."""
    stack = [page]
    while stack:
        element = stack.pop()
        yield element
        stack += [child for child in element if child in sizes and child not in skipped]


def _sizes(page: html_blocks.Element) -> dict[html_blocks.Element, _Size]:
    """The size of each element that is shown."""
    sizes: dict[html_blocks.Element, _Size] = {}
    open_sizes: list[list[int]] = [[0, 0, 0, 0]]
    hidden = links = kept = 0
    for element, begins in html_blocks.walk(page):
        name = html_blocks.local_name(element)
        is_silent = name in html_blocks.SILENT or not name or html_blocks.is_hidden(element)
        step = 1 if begins else -1
        hidden += step * is_silent
        links += step * (name == "a")
        kept += step * (name in ("pre", "table"))
        if begins:
            open_sizes.append([0, 0, 0, int(name == "h1")])
            text = element.text
        else:
            size = open_sizes.pop()
            for index, number in enumerate(size):
                open_sizes[-1][index] += number
            if not hidden and not is_silent:
                sizes[element] = _Size(size[0], size[1], size[2], bool(size[3]))
            text = element.tail if element is not page else None
        if text and not hidden:
            length = len(text) if text.isascii() else len(text) + len(text.encode()) // 3
            length = length if not text.isspace() else 0
            count = open_sizes[-1]
            count[0] += length
            count[1] += length * bool(links)
            count[2] += length * bool(kept)
    sizes.setdefault(page, _Size(0, 0, 0, has_title=False))
    return sizes
