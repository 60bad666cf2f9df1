"""
Split a text into lines as an editor does: at ``\\n``, ``\\r\\n`` and ``\\r``, and nowhere else.

``str.splitlines`` also breaks at U+2028, U+0085, VT and FF, so it is never used here.
"""

from __future__ import annotations

import re
from itertools import accumulate

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines without their ends; a final line end adds no empty last line."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_starts(text: str) -> list[int]:
    """The character offset of each line of `split_lines`."""
    if "\r" in text:
        starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    else:
        starts = list(accumulate(map(len, text.split("\n")), _next_start, initial=0))
        starts.pop()
    if starts[-1] == len(text):
        starts.pop()
    return starts


def lines_and_starts(text: str) -> tuple[list[str], list[int]]:
    """`split_lines` and `line_starts` in one go."""
    lines = split_lines(text)
    if "\r" in text:
        return lines, line_starts(text)
    starts = list(accumulate(map(len, lines), _next_start, initial=0))
    starts.pop()
    return lines, starts


def byte_line_starts(text: str) -> list[int]:
    """The UTF-8 byte offset of each line of `split_lines`."""
    if text.isascii():
        return line_starts(text)
    data = text.encode()
    if b"\r" in data:
        starts = [0, *(match.end() for match in _LINE_END_BYTES.finditer(data))]
    else:
        starts = list(accumulate(map(len, data.split(b"\n")), _next_start, initial=0))
        starts.pop()
    if starts[-1] == len(data):
        starts.pop()
    return starts


def _next_start(start: int, length: int) -> int:
    return start + length + 1
