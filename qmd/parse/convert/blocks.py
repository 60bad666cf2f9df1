"""
Writes what other formats say as Markdown that means nothing more than they say.

Converters call it for blocks (`Blocks`), tables (`write_rows`) and lines of light markup
(`LightMarkup`). Tags, wikilinks and fields are text in such files
(`qmd.parse.document.parse_literal`), and so stay as they are. What becomes a note needs more than
that: see `qmd.parse.convert.in_note`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse.chunk import TARGET
from qmd.parse.converted import Anchor, Converted, limit_warnings
from qmd.parse.decode import decode
from qmd.parse.heading_text import heading_text
from qmd.parse.lines import split_lines
from qmd.parse.markdown import outline

if TYPE_CHECKING:
    from lxml import etree

#: Characters of the Markdown of one file; what is after them is left out.
MAX_CHARACTERS = 20_000_000
#: Lists and quotes inside each other; what lies deeper is written at this depth.
MAX_DEPTH = 12
#: Characters of a heading; a longer one is a paragraph.
MAX_HEADING = 300

_FORMATTED = re.compile(r"[\\`*_~={}\[\]<>&#]")


@dataclass(slots=True)
class _Container:
    """A list item or a quote; ``first`` begins its first line, ``rest`` the others."""

    first: str
    rest: str
    is_item: bool
    is_begun: bool = False


class Blocks:
    """
    Collects blocks, each inside the list items and quotes that are open.

    Attributes:
        warnings: Sentences for the document's warnings.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._pieces: list[str] = []
        self._length = 0
        self._anchors: list[Anchor] = []
        self._containers: list[_Container] = []
        self._too_deep = 0
        self._was_in_item = False
        self._is_full = False

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be written."""
        return self._is_full

    def warn(self, sentence: str) -> None:
        """Add a warning, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def anchor(self, kind: str, label: str, shown: str | None = None) -> None:
        """A place of the file begins with the next block; one without a block is left out."""
        start = self._length + 2 if self._pieces else 0
        if self._anchors and self._anchors[-1].start_char == start:
            self._anchors.pop()
        self._anchors.append(Anchor(kind, label, start, shown))

    def open_item(self, mark: str = "-") -> None:
        """Begin a list item; blocks belong to it until `close`."""
        self._open(_Container(f"{mark} ", " " * (len(mark) + 1), is_item=True))

    def open_quote(self) -> None:
        """Begin a quote; blocks belong to it until `close`."""
        self._open(_Container("> ", "> ", is_item=False))

    def close(self) -> None:
        """End the list item or quote that was opened last."""
        if self._too_deep:
            self._too_deep -= 1
        else:
            self._containers.pop()

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self.markdown(inert_lines(text))

    def heading(self, level: int, text: str) -> None:
        """A heading of plain text on one line; nothing if it is blank."""
        self.markdown(heading_line(level, text))

    def code(self, text: str, language: str = "") -> None:
        """Lines of code; blank lines around them are left out."""
        code = text.strip("\r\n").rstrip()
        if code.strip():
            self.markdown(fenced(code, language))

    def markdown(self, text: str) -> None:
        """A block that is Markdown already; nothing if it is blank."""
        text = text.strip("\n")
        if not text.strip() or self._is_full:
            return
        written = self._in_containers(text.split("\n"))
        if self._length + len(written) > MAX_CHARACTERS:
            self._is_full = True
            self.warnings.append(
                f"Its text is longer than {MAX_CHARACTERS:,} characters; the rest was left out."
            )
            return
        self._length += len(written)
        self._pieces.append(written)

    def _in_containers(self, lines: list[str]) -> str:
        """The lines with the signs of the open items and quotes, after what separates them."""
        containers = self._containers
        first = "".join(each.rest if each.is_begun else each.first for each in containers)
        rest = "".join(each.rest for each in containers)
        blank = "".join(each.rest for each in containers if each.is_begun).rstrip()
        begins_item = any(each.is_item and not each.is_begun for each in containers)
        is_tight = begins_item and self._was_in_item
        for container in containers:
            container.is_begun = True
        self._was_in_item = any(container.is_item for container in containers)
        written = "\n".join([first + lines[0], *((rest + line).rstrip() for line in lines[1:])])
        if not self._pieces:
            return written
        return ("\n" if is_tight else f"\n{blank}\n") + written

    def converted(
        self,
        *,
        title: str | None = None,
        title_is_heading: bool = False,
        date: str | None = None,
        properties: Mapping[str, object] | None = None,
        warnings: Iterable[str] = (),
        encoding: str = "utf-8",
    ) -> Converted:
        """
        All blocks as one text, with what is known of the document.

        ``title_is_heading``: without another title it is the main heading.
        """
        text = "".join(self._pieces) + "\n" if self._pieces else ""
        anchors = tuple(each for each in self._anchors if each.start_char < len(text))
        return Converted(
            text,
            anchors,
            " ".join((title or "").split()) or (main_heading(text) if title_is_heading else None),
            date,
            {key: value for key, value in (properties or {}).items() if value},
            limit_warnings((*warnings, *self.warnings)),
            encoding,
        )

    def _open(self, container: _Container) -> None:
        if len(self._containers) >= MAX_DEPTH:
            self._too_deep += 1
        else:
            self._containers.append(container)


def heading_line(level: int, text: str) -> str:
    """A heading of plain text as Markdown; if it is long or blank, the text as a paragraph."""
    line = " ".join(text.split())
    if not line or len(line) > MAX_HEADING:
        return inert_lines(line)
    written = inert(line)
    if heading_text(written) != line or written.endswith("#"):
        written = _FORMATTED.sub(r"\\\g<0>", line)
    return f"{'#' * max(1, min(6, level))} {written}"


# --- text that means nothing as Markdown ------------------------------------------------
# Only what would be taken for a heading, a link or HTML gets a backslash before it, because each
# backslash stands between the signs that a search for exactly these signs looks for; emphasis stays
# for the same reason.

_ADDRESS = r"https?://|[A-Za-z0-9][^\s<>@]{0,63}@[^\s<>]{1,255}>"
#: Links, HTML, entities, comments and fences. An escape is taken whole, so that no second backslash
#: undoes the first. Addresses in angle brackets are links that stand in the text as such.
_SIGNS = re.compile(
    rf"\\.|\](?=\()|<(?=[A-Za-z/!?])(?!{_ADDRESS})"
    r"|&(?=\#?\w{1,31};)|%(?=%)|`{3,}|~{3,}",
    re.DOTALL,
)
#: What means something only where a line begins: headings, rules below text, definitions, and the
#: rules that would begin frontmatter.
_LINE_BEGINNING = re.compile(
    r"(?:\A|(?<=[\r\n]))([ \t]*)"
    r"(?=#{1,6}(?:[ \t\r\n]|\Z)|(?:-+|=+|\++)[ \t]*(?:[\r\n]|\Z)|\[[^\[\]\r\n]{1,999}\]:)"
)


_IN_LABEL = re.compile(r"\\.|[\[\]]|\\\Z", re.DOTALL)
_UNLINKABLE = re.compile(r"[<>`\x00-\x1f\x7f]|%%")
_IN_ANGLES = re.compile(r"[\s()\\]")
#: Characters of the target of a link; such a long one is data.
MAX_TARGET = 2000


def inert(text: str) -> str:
    """
    Text inside a paragraph, as Markdown that says the same and means nothing else.

    `inert_lines` also takes care of what begins a line.
    """
    return _SIGNS.sub(_marked, text)


def inert_lines(text: str) -> str:
    """Whole lines of plain text, as Markdown without headings, links, HTML and fences."""
    return inert_beginnings(inert(text))


def inert_beginnings(markdown: str) -> str:
    """Markdown whose lines do not begin as headings, rules and definitions do."""
    return _LINE_BEGINNING.sub(r"\1\\", markdown)


def _marked(match: re.Match[str]) -> str:
    sign = match.group()
    if sign[0] == "\\":
        return sign
    if sign[0] in "]%":  # of these pairs, the second sign is the one to mark
        return f"{sign}\\"
    return f"\\{sign}"


def code_span(text: str) -> str:
    """Code inside a line, between backticks; of a text without visible signs, the text."""
    line = " ".join(text.split("\n"))
    if not line.strip():
        return line
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return f"{marks} {line} {marks}"


def fenced(text: str, language: str = "") -> str:
    """
    Lines of code between fences that nothing in them closes.

    Args:
        language: Kept if it is one word of letters, digits and ``+#-_.``.
    """
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    if not re.fullmatch(r"[\w+#.-]{1,40}", language):
        language = ""
    end = "" if text.endswith("\n") else "\n"
    return f"{marks}{language}\n{text}{end}{marks}"


def link(text: str, target: str) -> str:
    """
    A link of Markdown; the text alone if the target cannot be written.

    Args:
        text: Markdown without links.
    """
    if not target or not text.strip() or _UNLINKABLE.search(target) or len(target) > MAX_TARGET:
        return text
    if _IN_ANGLES.search(target):
        target = f"<{target}>"
    label = _IN_LABEL.sub(_bracket, " ".join(text.split()))
    return f"[{label}]({target})"


def _bracket(match: re.Match[str]) -> str:
    sign = match.group()
    return sign if len(sign) == 2 else f"\\{sign}"


# --- cells and lines of tables ----------------------------------------------------------

#: Columns that are read; a row's further cells are left out.
MAX_COLUMNS = 200
TOO_MANY_COLUMNS = f"The table has over {MAX_COLUMNS} columns; the others were left out."
#: Characters of a column's name where each value has it: a long one would be there for each row.
MAX_NAME = 40
#: Characters of a cell; the rest of it is left out.
MAX_CELL = 20_000

_NUMBER = re.compile(r"(?=\D{0,9}\d)[-+]?[\d.,\xa0 %]+")

_MARKED = re.compile(r"[\\|\]<&%`~\s]")

Row = Sequence[str]


def cell(text: str) -> str:
    """Plain text as one cell of a table."""
    if _MARKED.search(text) is None and len(text) <= MAX_CELL:  # most cells, ten times as fast
        return text.strip()
    return piped(inert(" ".join(text[:MAX_CELL].split())))


def piped(markdown: str) -> str:
    """Markdown of one line as a cell of a table: a bar in it does not end the cell."""
    return re.sub(r"\\.|\|", lambda sign: "\\|" if sign[0] == "|" else sign[0], markdown)


def table_lines(head: Row, rows: Iterable[Row], width: int = 0) -> list[str]:
    """The lines of a table of cells that are Markdown already; short rows are filled."""
    width = max(width, len(head))
    lines = [_line(head, width), "|" + "---|" * width]
    lines += (_line(row, width) for row in rows)
    return lines


# --- formulas ---------------------------------------------------------------------------

#: How parts of a formula are written on one line, by the names of MathML and of Office.
_FORMULAS = {
    **dict.fromkeys(("mfrac", "f"), "{0}/{1}"),
    **dict.fromkeys(("msup", "mover", "sSup", "limUpp"), "{0}^{1}"),
    **dict.fromkeys(("msub", "munder", "sSub", "limLow"), "{0}_{1}"),
    **dict.fromkeys(("msubsup", "munderover", "sSubSup"), "{0}_{1}^{2}"),
    "nary": "{0}_{1}^{2} {3}",
}
_IN_BRACKETS = {"mfenced": ("(", ")", ", "), "d": ("(", ")", "|"), "mtable": ("[", "]", "; ")}
_IN_BRACKETS |= {"m": _IN_BRACKETS["mtable"], "mtr": ("", "", ", "), "mr": ("", "", ", ")}
_ATOM = r"(?:\d+(?:[.,]\d+)?|\w|∞)"
_SIMPLE = re.compile(rf"[-+−]?{_ATOM}(?:\^[-+−]?{_ATOM})?|\([^()]*\)|\[[^\[\]]*\]")
_SIMPLE_BASE = re.compile(rf"{_ATOM}|\w*|[∑∏∫]|\([^()]*\)|\[[^\[\]]*\]")
_EMPTY_PART = re.compile(r"[_^](?=[_^ ]|$)")
#: Parts of a formula inside each other; deeper ones are written one after the other.
_MAX_FORMULA = 40


def formula(element: etree._Element, depth: int = 0) -> str:
    """A formula of MathML or of Office on one line, with brackets where its looks have none."""
    name = _local(element)
    if depth > _MAX_FORMULA:
        return "".join(element.itertext())
    if not len(element):
        return " ".join((element.text or "").split()) if name != "t" else element.text or ""
    parts = [each for each in element if isinstance(each.tag, str) and not _is_look(each)]
    texts = [formula(each, depth + 1) for each in parts]
    if name == "nary":
        texts.insert(0, _sign(element, "chr", "∫"))
    if name in _FORMULAS:
        return _in_place(name, texts)
    if name in ("msqrt", "mroot", "rad"):
        return _root(name, texts)
    begin, end, between = _IN_BRACKETS.get(name, ("", "", ""))
    if name == "d":
        begin, end = _sign(element, "begChr", begin), _sign(element, "endChr", end)
    return f"{begin}{between.join(texts)}{end}"


def _in_place(name: str, texts: Sequence[str]) -> str:
    """Parts that stand above or below each other."""
    has_base = name not in ("mfrac", "f")
    grouped = [_grouped(text, is_base=has_base and not n) for n, text in enumerate(texts)]
    return _EMPTY_PART.sub("", _FORMULAS[name].format(*grouped, *[""] * 4)).rstrip()


def _root(name: str, texts: Sequence[str]) -> str:
    if name == "msqrt":
        texts = ("", "".join(texts))
    elif name == "mroot":
        texts = texts[::-1]
    degree, inside = "".join(texts[:-1]), "".join(texts[-1:])
    return f"root({degree}, {inside})" if degree else f"√{_grouped(inside)}"


def _sign(element: etree._Element, name: str, usual: str) -> str:
    """A sign that the looks of a part of an Office formula name."""
    looks = next((each for each in element if _local(each).endswith("Pr")), None)
    for each in () if looks is None else looks:
        if _local(each) == name:
            return "".join(map(str, each.attrib.values()))[:4]
    return usual


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_look(element: etree._Element) -> bool:
    """Whether an element of a formula has no text that is shown."""
    return _local(element).endswith("Pr") or _local(element) in ("annotation", "annotation-xml")


def _grouped(text: str, *, is_base: bool = False) -> str:
    simple = _SIMPLE_BASE if is_base else _SIMPLE
    return text if not text or simple.fullmatch(text) else f"({text})"


# --- whole tables -----------------------------------------------------------------------


class SpannedTable:
    """
    A table whose cells are Markdown and may span columns and rows.

    Attributes:
        rows: A cell stands at the first place of those that it spans; the others are empty.
        has_head: The first row is the head.
    """

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.has_head = False
        self._last_rows: dict[int, int] = {}  # column → the last row that a cell in it spans
        self._group: object = None

    def begin_row(self, group: object) -> None:
        """Begin a row; ``group``: no cell spans rows of two groups."""
        if group is not self._group:
            self._group = group
            self._last_rows.clear()
        self.rows.append([])

    def add(self, markdown: str, columns: int, rows: int) -> bool:
        """Add a cell to the last row that was begun; False if that has too many."""
        row, number = self.rows[-1], len(self.rows)
        while self._last_rows.get(len(row), 0) >= number:
            row.append("")
        if len(row) >= MAX_COLUMNS:
            return not markdown
        if rows > 1:
            for column in range(len(row), len(row) + columns):
                self._last_rows[column] = number + rows - 1
        row += [markdown, *[""] * (columns - 1)]
        return True

    def lines(self) -> list[str]:
        """Its lines; none without text."""
        rows = [row for row in self.rows if any(row)]
        if not rows:
            return []
        width = max(map(len, rows))
        return table_lines(rows.pop(0) if self.has_head else [], rows, width)


def write_rows(
    blocks: Blocks, rows: Iterable[Row], *, begin: Callable[[int, int], None] | None = None
) -> None:
    """
    A table of plain text in pieces that each repeat the head and fit into one chunk.

    The first row is the head, unless a number stands in it; then columns have letters. Where
    the head alone fills a good part of a chunk, each row becomes a list of its columns' values.

    Args:
        begin: Called before each piece with the number of its first and last row, from 1, the
            head counted.
    """
    _Pieces(blocks, begin or (lambda first, last: None)).write(rows)


class _Pieces:
    def __init__(self, blocks: Blocks, begin: Callable[[int, int], None]) -> None:
        self.blocks = blocks
        self.begin = begin
        self.head: list[str] = []
        self.lines: list[str] = []
        self.head_size = self.size = 0
        self.first = 1
        self.has_written = False

    def write(self, rows: Iterable[Row]) -> None:
        number = 0
        for number, row in enumerate(rows, start=1):
            if self.blocks.is_full:
                return
            if len(row) > MAX_COLUMNS:
                self.blocks.warn(TOO_MANY_COLUMNS)
            cells = [cell(each) for each in row[:MAX_COLUMNS]]
            if not self.head:
                if not any(cells):
                    continue
                self.first = number
                is_head = _is_head(cells)
                self.head = cells if is_head else [column_name(n) for n in range(len(cells))]
                self.head_size = _cost(_line(self.head, 0))
                if is_head:
                    continue
            if any(cells):
                self.row(number, cells)
        if self.head:
            self.flush(number)

    def row(self, number: int, cells: list[str]) -> None:
        if len(cells) > len(self.head):
            if self.lines:
                self.flush(number - 1)
                self.first = number
            self.head += [""] * (len(cells) - len(self.head))
            self.head_size = _cost(_line(self.head, 0))
        is_wide = self.head_size > TARGET // 4
        if is_wide:
            pairs = zip(self.head, cells, strict=False)
            named = ((f"{name[:MAX_NAME]}: " if name else "", value) for name, value in pairs)
            line = "- " + "; ".join(f"{name}{value}" for name, value in named if value)
        else:
            line = _line(cells, len(self.head))
        size = _cost(line)
        if self.lines and self.size + size > TARGET - (0 if is_wide else 2 * self.head_size):
            self.flush(number - 1)
            self.first = number
        if not self.lines and not is_wide:
            self.lines = table_lines(self.head, ())
        self.lines.append(line)
        self.size += size

    def flush(self, last: int) -> None:
        if not self.lines and self.has_written:
            return
        self.has_written = True
        self.begin(self.first, last)
        self.blocks.markdown("\n".join(self.lines or table_lines(self.head, ())))
        self.lines, self.size = [], 0


def column_name(column: int) -> str:
    """The name of a column, from 0, as spreadsheets have it: A, B, …, Z, AA."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(65 + letter) + name
    return name


def _is_head(cells: Row) -> bool:
    """
    Whether a table's first row names its columns: no number stands in it, unless an empty corner
    stands before it. Columns without a name have none; one over several is that of the first.
    """
    return not cells[0] or not any(_NUMBER.fullmatch(each) for each in cells)


def _line(cells: Row, width: int) -> str:
    filled = [*cells, *("" for _ in range(width - len(cells)))]
    return f"| {' | '.join(filled)} |"


def _cost(text: str) -> int:
    """In eighths of a token, as `qmd.parse.chunk` counts."""
    return 2 * len(text) if text.isascii() else 3 * len(text.encode()) - len(text)


# --- light markup -----------------------------------------------------------------------
# Light markup becomes Markdown line by line, so that lines keep their numbers. Headings, items,
# code and text are written in the place of the line that they come from; what is not to be read
# becomes a blank line.


class _Item(NamedTuple):
    """An open list item: where its sign stands in the source, and where its text is written."""

    indent: int
    column: int


class MarkupLines:
    """
    Collects the lines of a document.

    Args:
        source: The lines of the file; fences are longer than any run of backticks in them.
    """

    def __init__(self, source: Sequence[str]) -> None:
        longest = max((len(run) for line in source for run in re.findall("`{3,}", line)), default=2)
        self._fence = "`" * (longest + 1)
        self._lines: list[str] = []
        self._items: list[_Item] = []
        self.is_in_code = False

    def blank(self) -> None:
        """A line without text; the list goes on if the next line is inside it."""
        self._lines.append("")

    def text(self, indent: int, markdown: str) -> None:
        """A line of text; left of the text of an item, it ends that item."""
        self._leave(indent)
        self._lines.append(" " * self._column() + markdown)

    def paragraph_line(self, indent: int, markdown: str) -> None:
        """As `text`, but what would begin a heading, a rule or a quote is marked."""
        if markdown.startswith(">"):
            markdown = f"\\{markdown}"
        self.text(indent, inert_beginnings(markdown))

    def item(self, indent: int, mark: str, markdown: str) -> None:
        """A list item whose sign stands at this column."""
        self._leave(indent)
        column = self._column()
        self._lines.append(f"{' ' * column}{mark} {markdown}")
        if len(self._items) < MAX_DEPTH:
            self._items.append(_Item(indent, column + len(mark) + 1))

    def heading(self, level: int, text: str) -> None:
        """A heading of plain text; it ends all lists."""
        self._items.clear()
        self._lines.append(heading_line(level, text))

    def begin_code(self, indent: int, language: str = "", *, above: bool = False) -> None:
        """
        A line that opens a fence.

        Args:
            above: It takes the place of the line above, if that is blank.
        """
        if above and self._lines and not self._lines[-1]:
            self._lines.pop()
        self._leave(indent)
        word = language if re.fullmatch(r"[\w+#.-]{1,40}", language) else ""
        self._lines.append(f"{' ' * self._column()}{self._fence}{word}")
        self.is_in_code = True

    def code(self, line: str) -> None:
        """A line of code."""
        self._lines.append(f"{' ' * self._column()}{line}".rstrip())

    def end_code(self) -> None:
        """A line that closes the fence; a blank one if none is open."""
        self._lines.append(f"{' ' * self._column()}{self._fence}" if self.is_in_code else "")
        self.is_in_code = False

    @property
    def markdown(self) -> str:
        """All lines as one text."""
        return "\n".join(self._lines).rstrip() + "\n" if any(self._lines) else ""

    def _column(self) -> int:
        return self._items[-1].column if self._items else 0

    def _leave(self, indent: int) -> None:
        """End the items whose sign does not stand left of this column."""
        while self._items and self._items[-1].indent >= indent:
            self._items.pop()


class LightMarkup(ABC):
    """
    A file of light markup; each format has a class of its own, which says what a line means.

    Raises:
        DecodeError: The bytes are no text.

    Attributes:
        written: The Markdown of the lines before ``at``, a line for each of them.
        title: "" for the first heading of level 1.
    """

    def __init__(self, data: bytes) -> None:
        self._decoded = decode(data)
        self.lines = split_lines(self._decoded.text)
        self.written = MarkupLines(self.lines)
        self.at = 0
        self.title = ""
        self.date: str | None = None
        self.properties: dict[str, object] = {}

    @abstractmethod
    def read_line(self) -> None:
        """Write the line ``at``, perhaps with some after it, and go on to the next."""

    def converted(self) -> Converted:
        """The whole file."""
        while self.at < len(self.lines):
            self.read_line()
        self.written.end_code()
        text = self.written.markdown
        return Converted(
            text,
            title=self.title or main_heading(text),
            date=self.date,
            properties={key: value for key, value in self.properties.items() if value},
            warnings=self._decoded.warnings,
            encoding=self._decoded.encoding,
        )


def main_heading(markdown: str) -> str | None:
    """The first heading of level 1."""
    headings = outline(markdown).headings
    return next((each.text for each in headings if each.level == 1 and each.text), None)


def rewrite_matches(
    text: str, pattern: re.Pattern[str], rewrite: Callable[[re.Match[str]], str]
) -> str:
    """Text in which the matches become Markdown, and the rest means nothing."""
    pieces: list[str] = []
    at = 0
    for match in pattern.finditer(text):
        pieces += [inert(text[at : match.start()]), rewrite(match)]
        at = match.end()
    return "".join([*pieces, inert(text[at:])])


def indent_of(line: str) -> int:
    """The columns of white space before a line's text."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(8))


def dedented(line: str, columns: int) -> str:
    """A line of code without so many columns of white space before it, if it has them."""
    if "\t" in line[: columns + 1]:
        line = line.expandtabs(8)
    return line[columns:] if not line[:columns].strip() else line.lstrip(" ")
