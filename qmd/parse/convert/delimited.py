"""Turns CSV and TSV into tables, in pieces that each have the head."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from qmd.parse.convert.blocks import Blocks, write_rows
from qmd.parse.converted import Converted
from qmd.parse.decode import decode
from qmd.parse.lines import split_lines

#: Characters of a cell. A longer one is what follows a quotation mark that nothing closes.
MAX_FIELD = 1_000_000
_MAX_ERRORS = 20  # after so many unclosed quotation marks they mean nothing
_SAMPLE = 50  # lines that decide which sign separates the cells
_SEPARATORS = "\t,;|"


def convert(path: str, data: bytes) -> Converted:
    """
    A table; its anchors are the lines of the file at which its pieces begin.

    Raises:
        DecodeError: The bytes are no text.
    """
    decoded = decode(data)
    lines = split_lines(decoded.text)
    separator = "\t" if path.lower().endswith((".tsv", ".tab")) else _separator(lines)
    blocks = Blocks()
    rows = _Rows(lines, separator)
    write_rows(
        blocks, rows, begin=lambda first, last: blocks.anchor("line", str(rows.line_of[first - 1]))
    )
    return blocks.converted(warnings=decoded.warnings, encoding=decoded.encoding)


def _separator(lines: list[str]) -> str:
    """The sign that stands equally often in most of the first lines; the most frequent of such."""
    best, best_rank = ",", (0, 0)
    sample = [line for line in lines[:_SAMPLE] if line.strip()]
    for separator in _SEPARATORS:
        counts = [line[:MAX_FIELD].count(separator) for line in sample]
        usual = max(set(counts), key=counts.count, default=0)
        rank = (counts.count(usual) if usual else 0, usual)
        if rank > best_rank:
            best, best_rank = separator, rank
    return best


class _Rows:
    """
    The rows of the table, which may be read once.

    Attributes:
        line_of: The line at which each row that was read begins, from 1.
    """

    def __init__(self, lines: list[str], separator: str) -> None:
        self.line_of: list[int] = []
        self._lines = lines
        self._separator = separator

    def __iter__(self) -> Iterator[list[str]]:
        csv.field_size_limit(MAX_FIELD)
        at = errors = 0
        while at < len(self._lines):
            lines = (f"{line}\n" for line in self._lines[at:])
            reader = csv.reader(
                lines,
                delimiter=self._separator,
                quoting=csv.QUOTE_MINIMAL if errors < _MAX_ERRORS else csv.QUOTE_NONE,
            )
            begin = at
            try:
                for row in reader:
                    self.line_of.append(at + 1)
                    yield row
                    at = begin + reader.line_num
            except csv.Error:
                # A quotation mark that nothing closes: its line is read as it stands.
                self.line_of.append(at + 1)
                yield self._lines[at][:MAX_FIELD].split(self._separator)
                at += 1
                errors += 1
