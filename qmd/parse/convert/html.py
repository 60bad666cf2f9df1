"""
Turns a saved page into Markdown: the article without what surrounds it, its title and its date.

MHTML holds the page beside its images; only the page is read.
"""

from __future__ import annotations

import binascii
import email
import json
import re
from collections.abc import Iterator, Mapping
from email import policy
from itertools import islice
from typing import Any
from urllib.parse import unquote

from qmd.errors import DamagedFileError
from qmd.parse.convert.article import find_article
from qmd.parse.convert.blocks import Blocks, heading_line
from qmd.parse.convert.html_blocks import Element, ElementWriter, local_name
from qmd.parse.convert.html_tree import html_text, html_tree
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date

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
    meta = _Meta(root)
    # What a page calls its own address may be that of another; a note keeps where it came from.
    stated = (meta.address, address) if pictures is None else (address, meta.address)
    address = next(filter(None, stated), "") or _saved_from(text)
    body = root.find("body")
    article = find_article(root if body is None else body)
    title = meta.title(root)
    if title and next(_elements(article.root, "h1"), None) is None:
        blocks.markdown(heading_line(1, title))
    base = meta.base or address
    writer = ElementWriter(blocks, base=base, skipped=article.skipped, pictures=pictures)
    writer.write(article.root)
    if blocks.is_empty:  # a page of nothing but links
        ElementWriter(blocks, base=base, pictures=pictures).write(article.root)
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


class _Meta:
    """What a page says about itself, in JSON-LD and in ``<meta>``."""

    def __init__(self, root: Element) -> None:
        self._names: dict[str, str] = {}
        self._json: list[Mapping[str, object]] = []
        self._title = self._time = self._canonical = self.base = ""
        for element in root.iter():
            self._add(element)
        self.address = self._canonical or _web_address(self.named("og:url"))

    def _add(self, element: Element) -> None:
        name = local_name(element)
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

    def _add_name(self, element: Element) -> None:
        name = element.get("property") or element.get("name") or element.get("itemprop") or ""
        content = " ".join((element.get("content") or "").split())
        if name and content and len(content) < 5000:
            self._names.setdefault(name.lower(), content)

    def named(self, *names: str) -> str:
        """The content of the first of these that the page has."""
        return next((self._names[name] for name in names if self._names.get(name)), "")

    def title(self, root: Element) -> str:
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


def _elements(root: Element, name: str) -> Iterator[Element]:
    return (element for element in root.iter() if local_name(element) == name)


def _line(element: Element) -> str:
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
