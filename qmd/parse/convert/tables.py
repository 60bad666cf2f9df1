"""Writes tables as Markdown, in pieces that each have the head and fit into one chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from qmd.parse.chunk import TARGET
from qmd.parse.convert.blocks import Blocks
from qmd.parse.convert.inert import inert

#: Columns that are read; a row's further cells are left out.
MAX_COLUMNS = 200
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


def table_lines(head: Row, rows: Iterable[Row]) -> list[str]:
    """The lines of a table of cells that are Markdown already; short rows are filled."""
    width = len(head)
    lines = [_line(head, width), "|" + "---|" * width]
    lines += (_line(row, width) for row in rows)
    return lines


def write_rows(
    blocks: Blocks, rows: Iterable[Row], *, begin: Callable[[int, int], None] | None = None
) -> None:
    """
    A table of plain text in pieces that each repeat the head and fit into one chunk.

    The first row is the head, unless a number stands in it; then the columns have letters. Where
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
        self.is_cut = False
        self.has_written = False

    def write(self, rows: Iterable[Row]) -> None:
        number = 0
        for number, row in enumerate(rows, start=1):
            if self.blocks.is_full:
                return
            if len(row) > MAX_COLUMNS and not self.is_cut:
                self.is_cut = True
                self.blocks.warnings.append(
                    f"The table has over {MAX_COLUMNS} columns; the others were left out."
                )
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
            self.head += (column_name(column) for column in range(len(self.head), len(cells)))
            self.head_size = _cost(_line(self.head, 0))
        is_wide = self.head_size > TARGET // 4
        if is_wide:
            pairs = zip(self.head, cells, strict=False)
            line = "- " + "; ".join(f"{name[:MAX_NAME]}: {value}" for name, value in pairs if value)
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
    """Whether a table's first row names its columns: no number stands in it, and most have text."""
    if any(_NUMBER.fullmatch(each) for each in cells):
        return False
    return 2 * sum(map(bool, cells)) > len(cells)


def _line(cells: Row, width: int) -> str:
    filled = [*cells, *("" for _ in range(width - len(cells)))]
    return f"| {' | '.join(filled)} |"


def _cost(text: str) -> int:
    """In eighths of a token, as `qmd.parse.chunk` counts."""
    return 2 * len(text) if text.isascii() else 3 * len(text.encode()) - len(text)
