"""
Splits a text into lines as an editor does: at ``\\n``, ``\\r\\n`` and ``\\r``, and nowhere else.

``str.splitlines`` also breaks at U+2028, U+0085, VT and FF, so it is never used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, count
from operator import add

from qmd import lazy

_LINE_END = lazy.pattern(r"\r\n|\r|\n")
_LINE_END_BYTES = lazy.pattern(rb"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines without their ends; a final line end adds no empty last line."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_starts(text: str, lines: int = 0) -> list[int]:
    """
    The character offset of each line of `split_lines`.

    Args:
        lines: How many there are, if the text is an excerpt whose last line is blank and has no
            line end: no character shows such a line.
    """
    if "\r" in text:
        starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    else:
        starts = _starts(text.split("\n"))
    if starts[-1] == len(text) and len(starts) > lines:
        starts.pop()
    return starts


def lines_and_starts(text: str) -> tuple[list[str], list[int]]:
    """The results of `split_lines` and `line_starts`; faster than calling both."""
    lines = split_lines(text)
    if "\r" in text:
        return lines, line_starts(text)
    return lines, _starts(lines)


def byte_line_starts(text: str) -> list[int]:
    """The UTF-8 byte offset of each line of `split_lines`."""
    if text.isascii():
        return line_starts(text)
    data = text.encode()
    if b"\r" in data:
        starts = [0, *(match.end() for match in _LINE_END_BYTES.finditer(data))]
    else:
        starts = _starts(data.split(b"\n"))
    if starts[-1] == len(data):
        starts.pop()
    return starts


def _starts(lines: Sequence[str] | Sequence[bytes]) -> list[int]:
    """Where each line starts in a text whose lines end with one character."""
    lengths_before = accumulate(map(len, lines), initial=0)
    starts = list(map(add, lengths_before, count()))  # one line end for each line before
    starts.pop()
    return starts
