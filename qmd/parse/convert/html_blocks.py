"""
Writes a tree of HTML as blocks of Markdown.

Links, code, lists, tables and formulas stay. Emphasis stays in what becomes a note, which people
read; of a file, which is searched, it is left out: its signs would stand between words that a
search for a phrase wants side by side, and in Chinese inside of words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree

from qmd.parse.convert.blocks import (
    MAX_CELL,
    MAX_COLUMNS,
    TOO_MANY_COLUMNS,
    Blocks,
    SpannedTable,
    code_span,
    formula,
    heading_line,
    inert,
    link,
    piped,
)
from qmd.parse.convert.in_note import (
    code_in_note,
    in_note,
    inert_formula,
    inert_in_note,
    inert_item,
    language_in_note,
    with_formulas,
)

Element = etree._Element  # lxml has no other name for their type

#: Elements of which nothing is text, or that only serve to operate a page.
SILENT = frozenset(
    (
        *("script", "style", "template", "noscript", "head", "title", "meta", "link", "svg"),
        *("canvas", "iframe", "object", "embed", "audio", "video", "map", "button", "input"),
        *("select", "textarea", "option", "datalist", "dialog", "rp", "rt", "noframes", "frameset"),
    )
)
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "body", "center", "div", "fieldset", "figure"),
        *("figcaption", "footer", "form", "header", "hgroup", "html", "legend", "main", "nav", "p"),
        *("section", "summary", "details", "dl", "ul", "ol", "menu", "table", "thead", "tbody"),
        *("tfoot", "tr", "caption", "td", "th", "li", "dt", "dd", "pre", "blockquote", "hr"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
_CODE = frozenset(("code", "samp", "tt"))
#: The signs of Markdown for emphasis; of elements inside each other, the first of these counts.
_EMPHASIS = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em"), "*"),
    **dict.fromkeys(("s", "del", "strike"), "~~"),
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PERMALINKS = frozenset(("¶", "#", "§", "🔗", "link", "permalink"))
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:?)[-_ ]?([\w+#.-]+)"
)
_LINE_NUMBERS = re.compile(
    r"(?:^|[\s_-])(?:linenos?|linenumbers?|line-numbers?|gutter|lineno)(?:$|[\s_-])"
)
_SPACES = re.compile(r"[^\S\u3000]+")
#: What would end the emphasis around it; an escape is taken whole.
_SIGNS_INSIDE = re.compile(r"(?<!\\)[*~]")
_FACT = re.compile(r"\[[^\[\]\r\n]+\]\s")
_NUMBER = re.compile(r"[-+−]?\d{1,3}")
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_TINY = ("0", "1", "2")
_SIZE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)[wx]")
#: Where pages keep the source of a picture that a script loads when it comes into view.
_LATER = ("data-src", "data-original", "data-lazy-src", "data-actualsrc", "data-url")
#: Characters of a picture that stands in the page itself.
MAX_INLINE = 8_000_000
#: More rows than any group has: a cell with ``rowspan=0`` spans all that are left of its group.
_ALL_ROWS = 99_999
_SCHEMES = ("http", "https", "mailto", "ftp", "tel", "doi")


class TableFacts:
    """What decides whether a table shows data or arranges a page."""

    def __init__(self) -> None:
        self.rows = self.columns = self.longest = 0
        self.has_heads = self.has_blocks = False
        self.column = self.length = 0  # cells of the open row, characters of the open cell

    def add(self, element: Element, name: str) -> None:
        """Take account of an element in the table."""
        if name == "tr":
            self.rows += 1
            self.column = 0
        elif name in ("td", "th"):
            self.column += 1
            self.columns = max(self.columns, self.column)
            self.has_heads = self.has_heads or name == "th"
            self.length = 0
        elif name in _HEADINGS or (name == "pre" and _has_lines(element)):
            self.has_blocks = True
        self.length += len(element.text or "")
        self.longest = max(self.longest, self.length)

    @property
    def shows_data(self) -> bool:
        """Whether it is a table of data that Markdown can show."""
        if self.has_blocks or self.longest > MAX_CELL:
            return False
        return self.columns > 1 and (self.has_heads or self.rows > 1)


class _Inline(NamedTuple):
    """A part of a paragraph: plain text, or Markdown; ``emphasis`` are the signs around it."""

    text: str
    is_text: bool
    emphasis: str = ""


class _Link:
    """An open link, with the parts of the paragraph before it and the emphasis around it."""

    def __init__(self, target: str, before: list[_Inline], emphasis: Counter[str]) -> None:
        self.target = target
        self.before = before
        self.emphasis = emphasis
        self.has_image = False


def local_name(element: Element) -> str:
    """An element's name in lower case, without its namespace; empty for comments."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    if tag.isalnum() and tag.islower():  # as most are
        return tag
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def is_hidden(element: Element) -> bool:
    """Whether a browser does not show an element. Formulas stand in such elements."""
    attributes = element.attrib
    if not attributes:
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(attributes.get("style") or "") is not None
    ) and "math" not in (attributes.get("class") or "")


class ElementWriter:
    """
    Writes elements as blocks.

    Args:
        base: The address that relative targets are relative to; empty to keep them.
        skipped: Elements that are left out.
        only_web: Links to what is not on the web lead into the file that holds the page, and so
            are only their text, as are its pictures.
        pictures: For what becomes a note, in which tags, wikilinks, fields and tasks would count:
            the source of each picture, and the target that is written for it. Those that are not
            there are added, with their addresses.
        has_formulas: Whether a script of the page shows formulas that its text has as TeX.
    """

    def __init__(
        self,
        blocks: Blocks,
        *,
        base: str = "",
        skipped: frozenset[Element] = frozenset(),
        only_web: bool = False,
        pictures: dict[str, str] | None = None,
        has_formulas: bool = False,
    ) -> None:
        self._is_note = pictures is not None
        self._pictures = {} if pictures is None else pictures
        self._has_formulas = has_formulas
        self._blocks = blocks
        self._base = base
        self._skipped = skipped
        self._only_web = only_web
        self._parts: list[_Inline] = []
        self._links: list[_Link] = []
        self._emphasis = Counter[str]()  # open elements for each sign
        self._code: list[str] | None = None  # of a code span
        self._pre: list[str] | None = None
        self._pre_language = ""
        self._heading = 0
        self._lists: list[int | None] = []  # the next number of each open list, None for bullets
        self._items: list[str] = []  # what is open: "list", "li", "dt", "blockquote"
        self._tables: list[SpannedTable | None] = []  # None for one that arranges the page
        self._cells = 0  # open cells of tables that show data
        self._facts: Mapping[Element, TableFacts] = {}

    def write(self, root: Element) -> None:
        """Write an element and all in it."""
        self._facts = table_facts(root)
        self._text(root.text if self._enter(root) else None)
        stack = [(root, iter(root))]
        while stack:
            element, children = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                self._leave(element)
                if stack:
                    self._text(element.tail)
            elif self._blocks.is_full:
                break
            elif child in self._skipped or not self._enter(child):
                self._text(child.tail)
            else:
                self._text(child.text)
                stack.append((child, iter(child)))
        self._flush()

    def _enter(self, element: Element) -> bool:
        """Begin an element; False if nothing in it is to be read."""
        name = local_name(element)
        if name in SILENT or not name or is_hidden(element):
            kind = element.get("type") or ""
            if name == "script" and kind.startswith("math/tex"):
                self._formula(element.text or "", "$$" if "display" in kind else "$")
            return False
        if self._pre is not None:
            return self._enter_in_code(element, name, self._pre)
        if self._code is not None and name not in _BLOCKS and name not in _EMPHASIS:
            return True
        enter = _ENTER.get(name)
        if name in _BLOCKS:
            self._begin_block()
        return enter is None or enter(self, element, name) is not False

    def _leave(self, element: Element) -> None:
        name = local_name(element)
        if self._pre is not None and name != "pre":
            if name in _BLOCKS:
                self._new_code_line(self._pre)
            return
        if name in _BLOCKS:
            self._flush()
        leave = _LEAVE.get(name)
        if leave:
            leave(self, element, name)

    # Text and what stands in a paragraph.

    def _text(self, text: str | None) -> None:
        if not text:
            return
        if self._pre is not None:
            self._pre.append(text)
        elif self._code is not None:
            self._code.append(text)
        else:
            for sign, part in with_formulas(text) if self._has_formulas else (("", text),):
                if sign:
                    self._formula(part, sign)
                else:
                    self._parts.append(_Inline(part, is_text=True, emphasis=self._signs()))

    def _mark(self, markdown: str) -> None:
        if markdown:
            self._parts.append(_Inline(markdown, is_text=False, emphasis=self._signs()))

    def _signs(self) -> str:
        """The signs of the emphasis that is open."""
        return next((sign for sign in _EMPHASIS.values() if self._emphasis[sign]), "")

    def _begin_block(self) -> None:
        """A block ends the paragraph before it, and the links around it are none."""
        self._end_code()
        while self._links:
            opened = self._links.pop()
            opened.before += self._parts
            self._parts = opened.before
            self._emphasis += opened.emphasis
        self._flush()

    def _flush(self) -> None:
        """End the open paragraph."""
        if self._cells:
            self._text(" ")
            return
        self._end_code()
        if not self._parts:
            return
        parts, self._parts = self._parts, []
        if self._heading:
            line = heading_line(self._heading, _plain(parts))
            self._blocks.markdown(_heading_in_note(line) if self._is_note else line)
        else:
            self._blocks.markdown(self._paragraph(parts))

    def _paragraph(self, parts: list[_Inline]) -> str:
        if not self._is_note:
            return _markdown_of(parts, inert)
        text = _markdown_of(parts, inert_in_note)
        # A list item that begins so would be a fact, which clients recall as the person's own.
        return f"\\{text}" if _FACT.match(text) else inert_item(text)

    def _end_code(self) -> None:
        if self._code is not None:
            text = _SPACES.sub(" ", "".join(self._code))
            self._code = None
            self._mark(code_in_note(text) if self._is_note else code_span(text))

    def _formula(self, source: str, sign: str = "$") -> None:
        source = _SPACES.sub(" ", source).strip()
        if source:
            self._mark(inert_formula(source, sign, is_in_note=self._is_note))

    # What begins.

    def _enter_pre(self, element: Element, name: str) -> None:
        if self._cells:
            self._code = []
        else:
            self._pre = []
            self._pre_language = _language(element)

    def _enter_in_code(self, element: Element, name: str, code: list[str]) -> bool:
        if name == "br":
            code.append("\n")
        elif name in _BLOCKS:
            self._new_code_line(code)
        return _LINE_NUMBERS.search(element.get("class") or "") is None

    def _new_code_line(self, code: list[str]) -> None:
        if code and not code[-1].endswith("\n"):
            code.append("\n")

    def _enter_code(self, element: Element, name: str) -> None:
        if not self._heading:
            self._code = []

    def _enter_link(self, element: Element, name: str) -> bool:
        if self._heading and _is_permalink(element):
            return False
        target = self._target(element.get("href") or "")
        if target and not self._heading and not self._links:
            self._links.append(_Link(target, self._parts, self._emphasis))
            self._parts, self._emphasis = [], Counter()
        return True

    def _enter_emphasis(self, element: Element, name: str) -> None:
        if self._is_note:
            self._emphasis[_EMPHASIS[name]] += 1

    def _enter_heading(self, element: Element, name: str) -> None:
        if not self._cells:
            self._heading = _HEADINGS[name]

    def _enter_break(self, element: Element, name: str) -> bool:
        self._mark(" " if self._cells or self._heading or self._links else "\n")
        return False

    def _enter_image(self, element: Element, name: str) -> bool:
        if self._is_note and not self._heading:
            return self._enter_kept_image(element)
        label = " ".join((element.get("alt") or "").split())
        source = element.get("src") or ""
        target = "" if source.startswith("data:") else self._target(source)
        is_ours = bool(target) and ":" not in target[:8]
        if self._heading or self._links or not target or not (label or is_ours):
            self._text(f" {label} " if label else None)
        else:
            written = link(inert(label) or "image", target)
            self._mark(f"!{written}" if written.endswith(")") else written)
        return False

    def _enter_kept_image(self, element: Element) -> bool:
        source = image_source(element)
        target = source if source.startswith(("data:", "cid:")) else self._target(source)
        if target and not (source.startswith("data:") and len(source) > MAX_INLINE):
            written = self._pictures.setdefault(source, target)
            label = " ".join((element.get("alt") or "").split())
            image = link(inert_in_note(label) or "image", written)
            if image.endswith(")"):
                self._mark(f"!{image}")
                if self._links:  # a link around a picture leads to a larger one, as a rule
                    self._links[-1].has_image = True
            else:
                self._text(f" {label} ")
        return False

    def _enter_raised(self, element: Element, name: str) -> None:
        text = element.text or ""
        if not len(element) and _NUMBER.fullmatch(text.strip()) and self._parts:
            self._text("^")

    def _enter_math(self, element: Element, name: str) -> bool:
        source = element.get("alttext")
        for note in () if source else element.iter("{*}annotation"):
            if "tex" in (note.get("encoding") or "").lower():
                source = note.text
                break
        if not source:
            source = formula(element)
        self._formula(source, "$$" if element.get("display") == "block" else "$")
        return False

    def _enter_list(self, element: Element, name: str) -> None:
        number: int | None = None
        if name == "ol":
            start = element.get("start") or "1"
            number = int(start) if re.fullmatch(r"\d{1,8}", start) else 1
        self._lists.append(number)
        self._items.append("list")

    def _enter_item(self, element: Element, name: str) -> None:
        if name == "dt":
            self._close_definition()
        if self._cells:
            self._text(" ")
            return
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        self._blocks.open_item("-" if number is None or name != "li" else f"{number}.")
        self._items.append(name)

    def _close_definition(self) -> None:
        """A term ends the definition of the term before it, which is in one item with it."""
        if self._items and self._items[-1] == "dt":
            self._items.pop()
            self._blocks.close()

    def _enter_quote(self, element: Element, name: str) -> None:
        if not self._cells:
            self._blocks.open_quote()
            self._items.append(name)

    def _enter_rule(self, element: Element, name: str) -> bool:
        if not self._cells and not self._blocks.is_empty:
            self._blocks.markdown("* * *")
        return False

    def _enter_table(self, element: Element, name: str) -> None:
        facts = self._facts.get(element)
        shows_data = facts is not None and facts.shows_data and not self._cells
        if element.get("role") in ("presentation", "none"):
            shows_data = False
        self._tables.append(SpannedTable() if shows_data else None)

    def _enter_row(self, element: Element, name: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table is not None and not self._cells:
            table.begin_row(element.getparent())

    def _enter_cell(self, element: Element, name: str) -> bool:
        if _LINE_NUMBERS.search(element.get("class") or ""):
            return False
        table = self._tables[-1] if self._tables else None
        if table is not None:
            if not table.rows:
                table.begin_row(None)
            if len(table.rows) == 1 and name == "th":
                table.has_head = True
            self._cells += 1
            self._parts = []
        return True

    # What ends.

    def _leave_pre(self, element: Element, name: str) -> None:
        if self._pre is not None:
            text, self._pre = "".join(self._pre), None
            language = self._pre_language
            if self._is_note:
                language = language_in_note(language)
            self._blocks.code(text.replace("\r\n", "\n"), language)

    def _leave_code(self, element: Element, name: str) -> None:
        self._end_code()

    def _leave_link(self, element: Element, name: str) -> None:
        if not self._links or self._heading or not self._target(element.get("href") or ""):
            return
        self._end_code()
        opened = self._links.pop()
        self._emphasis = opened.emphasis
        if opened.has_image:
            self._parts = opened.before + self._parts
            return
        label = self._paragraph(self._parts)
        self._parts = opened.before
        raw = "".join(part.text for part in self._parts[-1:])
        if raw.endswith("!"):
            self._text(" ")  # else it would be an image
        self._mark(link(label, opened.target))

    def _leave_emphasis(self, element: Element, name: str) -> None:
        if self._is_note:
            self._emphasis[_EMPHASIS[name]] -= 1

    def _leave_heading(self, element: Element, name: str) -> None:
        self._heading = 0

    def _leave_list(self, element: Element, name: str) -> None:
        self._lists.pop()
        while self._items and self._items.pop() != "list":
            self._blocks.close()

    def _leave_item(self, element: Element, name: str) -> None:
        if self._items and self._items[-1] == name and not self._cells:
            self._items.pop()
            self._blocks.close()

    def _leave_table(self, element: Element, name: str) -> None:
        table = self._tables.pop() if self._tables else None
        if table is not None:
            self._blocks.markdown("\n".join(table.lines()))

    def _leave_cell(self, element: Element, name: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table is None or not self._cells or not table.rows:
            return
        self._end_code()
        self._cells -= 1
        parts, self._parts = self._parts, []
        text = piped(" ".join(self._paragraph(parts).split()))
        columns, rows = _span(element, "colspan"), _span(element, "rowspan", zero=_ALL_ROWS)
        if not table.add(text, min(columns, MAX_COLUMNS), rows):
            self._blocks.warn(TOO_MANY_COLUMNS)

    def _target(self, target: str) -> str:
        """The target of a link as it is to be written; empty if it leads nowhere outside."""
        target = target.strip()
        if not target or target.startswith("#") or len(target) > 2000:
            return ""
        try:
            if self._base:
                target = urljoin(self._base, target)
            parts = urlsplit(target)
        except ValueError:
            return ""
        if parts.scheme:
            return target if parts.scheme.lower() in _SCHEMES else ""
        if target.startswith("/") or self._only_web:
            return ""  # a place of a site that the file does not name
        return parts.path  # a heading is found by its text, never by its id


#: What begins an element; False if nothing in it is to be read.
_ENTER: dict[str, Callable[[ElementWriter, Element, str], bool | None]] = {
    **dict.fromkeys(_HEADINGS, ElementWriter._enter_heading),
    **dict.fromkeys(_CODE, ElementWriter._enter_code),
    **dict.fromkeys(_EMPHASIS, ElementWriter._enter_emphasis),
    **dict.fromkeys(("ul", "ol", "menu", "dl"), ElementWriter._enter_list),
    **dict.fromkeys(("li", "dt"), ElementWriter._enter_item),
    **dict.fromkeys(("td", "th"), ElementWriter._enter_cell),
    "pre": ElementWriter._enter_pre,
    "a": ElementWriter._enter_link,
    "br": ElementWriter._enter_break,
    "img": ElementWriter._enter_image,
    "sup": ElementWriter._enter_raised,
    "math": ElementWriter._enter_math,
    "blockquote": ElementWriter._enter_quote,
    "hr": ElementWriter._enter_rule,
    "table": ElementWriter._enter_table,
    "tr": ElementWriter._enter_row,
}
_LEAVE: dict[str, Callable[[ElementWriter, Element, str], None]] = {
    **dict.fromkeys(_HEADINGS, ElementWriter._leave_heading),
    **dict.fromkeys(_CODE, ElementWriter._leave_code),
    **dict.fromkeys(_EMPHASIS, ElementWriter._leave_emphasis),
    **dict.fromkeys(("ul", "ol", "menu", "dl"), ElementWriter._leave_list),
    **dict.fromkeys(("li", "blockquote"), ElementWriter._leave_item),
    **dict.fromkeys(("td", "th"), ElementWriter._leave_cell),
    "pre": ElementWriter._leave_pre,
    "a": ElementWriter._leave_link,
    "table": ElementWriter._leave_table,
}


def _span(element: Element, name: str, *, zero: int = 1) -> int:
    span = (element.get(name) or "").strip()
    return int(span) or zero if re.fullmatch(r"[0-9]{1,5}", span) else 1


def walk(root: Element) -> Iterator[tuple[Element, bool]]:
    """Each element, with True when it begins and False when it ends; of any depth."""
    for event, element in etree.iterwalk(root, events=("start", "end")):
        yield element, event == "start"


def table_facts(root: Element) -> dict[Element, TableFacts]:
    """What there is to know of each table below an element."""
    tables: dict[Element, TableFacts] = {}
    opened: list[TableFacts] = []
    for element, begins in walk(root):
        name = local_name(element)
        if name == "table" and begins:
            if opened:
                opened[-1].has_blocks = True
            opened.append(tables.setdefault(element, TableFacts()))
        elif name == "table":
            opened.pop()
        if opened and begins:
            opened[-1].add(element, name)
        elif opened:
            opened[-1].length += len(element.tail or "")
    return tables


def _has_lines(element: Element) -> bool:
    return len(element) > 0 or "\n" in (element.text or "").strip()


def image_source(element: Element) -> str:
    """
    Where a picture is: also of one that a script would load later, the largest of several; "" for
    one that only counts visitors.
    """
    if any((element.get(side) or "").strip() in _TINY for side in ("width", "height")):
        return ""
    sources = [element.get(name) or "" for name in ("src", *_LATER)]
    sources += [_largest(element.get(name)) for name in ("srcset", "data-srcset")]
    parent = element.getparent()
    if parent is not None and local_name(parent) == "picture":
        sources += [_largest(each.get("srcset")) for each in parent]
    # What stands in for a picture until that is loaded is short, and comes last.
    sources.sort(key=lambda each: each.startswith("data:") and len(each) < 300)
    return next(filter(None, sources), "").strip()


def _largest(sources: str | None) -> str:
    """The source of a ``srcset`` with the most pixels; "" without one."""
    sized = []
    for each in filter(None, map(str.split, re.split(r",\s+", (sources or "")[:20_000]))):
        size = _SIZE.fullmatch(each[-1])
        sized.append((float(size[1]) if size else 0.0, each[0]))
    return max(sized, key=lambda each: each[0])[1].rstrip(",") if sized else ""


def _markdown_of(parts: list[_Inline], escape: Callable[[str], str]) -> str:
    """The parts of a paragraph as Markdown, on one line but for breaks."""
    written: list[str] = []
    for signs, run in groupby(_emphasized(parts), key=lambda part: part.emphasis):
        text = "".join(_written(part, escape, signs) for part in _joined(run))
        written.append(f"{signs}{text}{signs}")
    lines = "".join(written).split("\n")
    text = "\n".join(_SPACES.sub(" ", line).strip() for line in lines).strip("\n")
    return _line_beginnings(re.sub("\n{2,}", "\n", text))


def _written(part: _Inline, escape: Callable[[str], str], signs: str) -> str:
    if not part.is_text:
        return part.text
    text = escape(_SPACES.sub(" ", part.text))
    return _SIGNS_INSIDE.sub(r"\\\g<0>", text) if signs else text


def _emphasized(parts: list[_Inline]) -> list[_Inline]:
    """
    The parts, without emphasis where its signs would not be read as such.

    Those are the flanking rules of CommonMark; and signs beside each other are read together.
    """
    if not any(part.emphasis for part in parts):
        return parts
    runs = [
        (signs if is_core else "", piece)
        for signs, run in groupby(parts, key=lambda part: part.emphasis)
        for is_core, piece in _trimmed(list(run), signs)
    ]
    texts = [_plain(run) for _, run in runs]
    kept: list[_Inline] = []
    left = ""
    for (signs, run), text, after in zip(runs, texts, [*texts[1:], ""], strict=True):
        has_borders = bool(signs) and _begins(text[0], left) and _begins(text[-1], after[:1])
        kept += run if has_borders else (part._replace(emphasis="") for part in run)
        left = "*" if has_borders else text[-1]
    return kept


def _trimmed(run: list[_Inline], signs: str) -> Iterator[tuple[bool, list[_Inline]]]:
    """A run in up to three: blanks, what is between them (True), blanks."""
    if not signs:
        yield False, run
        return
    text = _plain(run)
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if start >= end:
        yield False, run
        return
    ends = [(0, start, False), (start, end, True), (end, len(text), False)]
    for first, last, is_core in ends:
        at, pieces = 0, []
        for part in run:
            piece = part.text[max(first - at, 0) : max(last - at, 0)]
            at += len(part.text)
            if piece:
                pieces.append(part._replace(text=piece))
        if pieces:
            yield is_core, pieces


def _begins(inner: str, outer: str) -> bool:
    """Whether signs between these two characters are a border of emphasis."""
    if outer in ("*", "~", "_", "\\"):
        return False
    return inner.isalnum() or not outer.isalnum()


def _line_beginnings(markdown: str) -> str:
    """Text that begins as a heading, a rule, an item or a quote does is marked."""
    if markdown[:1] in "#-+=[>*_0123456789 " or "\n" in markdown:
        return re.sub(
            r"(?m)^(?=#{1,6}(?: |$)|[-+=*_]+ *$|\[[^\[\]\n]{1,999}\]:|[-+*>] )|^\d{1,9}(?=[.)] )",
            r"\g<0>\\",
            markdown,
        )
    return markdown


def _joined(parts: Iterable[_Inline]) -> Iterator[_Inline]:
    """The parts, neighbours of plain text in one: a sign may end in another element."""
    texts: list[str] = []
    for part in parts:
        if part.is_text:
            texts.append(part.text)
            continue
        if texts:
            yield _Inline("".join(texts), is_text=True)
            texts = []
        yield part
    if texts:
        yield _Inline("".join(texts), is_text=True)


def _heading_in_note(heading: str) -> str:
    marks, _, text = heading.partition(" ")
    return f"{marks} {in_note(text)}"


def _plain(parts: list[_Inline]) -> str:
    return "".join(part.text for part in parts)


def _is_permalink(element: Element) -> bool:
    text = "".join(islice(element.itertext(), 9)).strip()
    return not text or text.lower() in _PERMALINKS


def _language(element: Element) -> str:
    """The language of code, as highlighters name it in the classes of it or around it."""
    for each in (element, *element[:1], element.getparent(), *_grandparent(element)):
        if each is None:
            continue
        named = each.get("data-lang") or each.get("data-language") or ""
        match = _LANGUAGE.search(each.get("class") or "")
        name = named or (match[1] if match else "")
        if name and name.lower() not in ("default", "none", "notranslate", "text", "plaintext"):
            return name.lower()
    return ""


def _grandparent(element: Element) -> Iterator[Element]:
    parent = element.getparent()
    grandparent = None if parent is None else parent.getparent()
    if grandparent is not None:
        yield grandparent
