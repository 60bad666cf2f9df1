"""
Workbooks, files of comma-separated values and presentations in the view of a note.

The text of a workbook, or of a file of comma-separated values, is tables in pieces, each with the
head (`qmd.parse.convert.blocks`). Here they are one table again, of which a view shows so many
rows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from qmd.parse.convert.blocks import column_name
from qmd.parse.formats import TABLE, format_of
from qmd.render import RenderedHeading
from qmd.server.page.viewed import ViewedDocument, batches, sections_of
from qmd.values import DocumentAnchor

#: Rows of one view.
ROWS = 200

_DELIMITERS = re.compile(r"\|(?:---\|)+")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_RANGE = re.compile(r"(?P<name>.+)!([A-Z]+)(?P<first>\d+):([A-Z]+)(?P<last>\d+)", re.DOTALL)
_NUMBER = re.compile(r"(?=\D{0,9}\d)[-+]?[\d.,\xa0 %]+")


class ShownRow(NamedTuple):
    """
    A row.

    Attributes:
        number: In the sheet, or among the rows of a file without sheets, from 1; None where it is
            not known.
        line: In the document's text.
    """

    number: int | None
    line: int
    cells: Sequence[str]
    is_marked: bool

    @staticmethod
    def is_number(cell: str) -> bool:
        """Whether a cell is aligned to the right."""
        return _NUMBER.fullmatch(cell) is not None


@dataclass(frozen=True, slots=True)
class SheetView:
    """
    A part of a sheet as the template shows it.

    Attributes:
        name: "" for a file that has no sheets.
        sheets: The names of all.
        number: Of the part, from 1, of ``parts``.
        total: The rows of the sheet, without the head.
    """

    name: str
    sheets: Sequence[str]
    head: Sequence[str]
    rows: Sequence[ShownRow]
    number: int
    parts: int
    total: int

    @property
    def most(self) -> int:
        return ROWS

    @property
    def first_marked(self) -> int | None:
        """The line of the first row that is marked."""
        return next((row.line for row in self.rows if row.is_marked), None)

    def address(self, name: str, part: int = 1) -> str:
        """The address of a part of a sheet, from here."""
        query = {**({"sheet": name} if name else {}), **({"part": part} if part > 1 else {})}
        return f"?{urlencode(query)}"


class _TableRow(NamedTuple):
    """A row whose cells are not read: a sheet may have a million, of which a view shows few."""

    number: int | None
    line: int


class _Piece(NamedTuple):
    """
    The lines ``[start, end)`` of the text that are a piece of a sheet, from 1.

    Attributes:
        rows: The numbers of its first and its last row; None where they are not known.
    """

    sheet: str
    rows: tuple[int, int] | None
    start: int
    end: int


def sheet_view(viewed: ViewedDocument) -> SheetView | None:
    """
    The sheet that a request asks for, by its name or by a line; None for a document without any.

    Also None where a piece is no table, because its head is too wide for one.
    """
    visit, text, lines = viewed.visit, viewed.text_lines, viewed.lines
    pieces = _pieces(viewed.places, viewed.document.path, len(text))
    if not pieces:
        return None
    sheets = list(dict.fromkeys(piece.sheet for piece in pieces))
    name = visit.query("sheet")
    if lines is not None:
        at = bisect_right(pieces, lines[0], key=lambda piece: piece.start) - 1
        name = pieces[max(0, at)].sheet
    if name not in sheets:
        name = sheets[0]
    table = _table([piece for piece in pieces if piece.sheet == name], text)
    if table is None:
        return None
    head, rows = table
    parts = max(1, -(-len(rows) // ROWS))
    number = min(visit.page_number("part"), parts)
    marked = range(0)
    if lines is not None and rows:
        # A line that is no row, such as the head of a piece, stands for the row below it.
        first = min(bisect_left(rows, lines[0], key=lambda row: row.line), len(rows) - 1)
        marked = range(lines[0], max(lines[1], rows[first].line) + 1)
        number = first // ROWS + 1
    shown = [
        ShownRow(row.number, row.line, _cells(text[row.line - 1]), row.line in marked)
        for row in rows[(number - 1) * ROWS : number * ROWS]
    ]
    return SheetView(name, sheets, head, shown, number, parts, len(rows))


def _pieces(places: Sequence[DocumentAnchor], path: str, lines: int) -> list[_Piece]:
    """The pieces of all sheets, in order; none for a document that has other places, too."""
    pieces = []
    for number, place in enumerate(places):
        end = places[number + 1].line if number + 1 < len(places) else lines + 1
        cells = _RANGE.fullmatch(place.label) if place.kind == "sheet" else None
        if cells is not None:
            rows = int(cells["first"]), int(cells["last"])
            pieces.append(_Piece(cells["name"], rows, place.line, end))
        elif place.kind == "line" and format_of(path) is TABLE:
            pieces.append(_Piece("", None, place.line, end))
        else:
            return []
    return pieces


def _table(
    pieces: Sequence[_Piece], text: Sequence[str]
) -> tuple[Sequence[str], list[_TableRow]] | None:
    """The head and the rows of a sheet; None if a piece of it is no table."""
    head: Sequence[str] = ()
    rows: list[_TableRow] = []
    for piece in pieces:
        lines = _lines_of_rows(text, piece)
        if not lines:
            return None
        own_head = _cells(text[lines[0] - 1])
        has_letters = own_head == [column_name(column) for column in range(len(own_head))]
        is_first, head = not head, max(head, own_head, key=len)
        number: int | None = len(rows) + 1
        if piece.rows is not None:
            first, last = piece.rows
            first += is_first and not has_letters  # the head is a row of the sheet
            number = first if last - first + 2 == len(lines) else None
        for offset, line in enumerate(lines[1:]):
            rows.append(_TableRow(None if number is None else number + offset, line))
    return head, rows


def _lines_of_rows(text: Sequence[str], piece: _Piece) -> list[int]:
    """The lines of a piece that are rows; none if one is no part of a table."""
    lines = []
    for line in range(piece.start, piece.end):
        written = text[line - 1]
        if written.startswith("| ") and written.endswith(" |"):
            lines.append(line)
        elif written and not written.startswith("#") and not _DELIMITERS.fullmatch(written):
            return []
    return lines


def _cells(row: str) -> list[str]:
    """The cells of a row, without its bars at both ends."""
    return [_ESCAPED.sub(r"\1", cell.strip()) for cell in row[2:-2].split(" | ")]


@dataclass(frozen=True, slots=True)
class ShownSlide:
    """
    A slide as the template shows it.

    Attributes:
        heading: What the outline has of it.
        is_focused: Whether the request asks for it.
    """

    number: int
    html: str
    heading: RenderedHeading
    is_focused: bool


@dataclass(frozen=True, slots=True)
class SlidesView:
    """A part of a presentation; ``part`` from 1."""

    slides: Sequence[ShownSlide]
    part: int
    parts: int
    total: int


def slides_view(viewed: ViewedDocument) -> SlidesView | None:
    """The slides that a request asks for; None for a document that has none."""
    places = viewed.places_of("slide")
    if not places:
        return None
    text, lines = viewed.text_lines, viewed.lines
    groups = list(batches(text, sections_of(places, len(text))))
    part = min(viewed.visit.page_number("part"), len(groups))
    if lines is not None:
        part = max(1, sum(group[0].start <= lines[0] for group in groups))
    slides = []
    for section in groups[part - 1]:
        assert section.number is not None
        shown = viewed.section(section)
        title = shown.headings[0].text if shown.headings else ""
        name = f"{section.number}  {title}".strip()
        heading = RenderedHeading(1, name, f"slide={section.number}", section.start)
        is_focused = viewed.is_marked_whole(section)
        slides.append(ShownSlide(section.number, shown.html, heading, is_focused))
    return SlidesView(slides, part, len(groups), len(places))
