"""Which lines of which documents the model has read in a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qmd.operations.replies import DocumentBlock, Reply

LineRange = tuple[int, int]
"""The first and the last line, counted from 1."""

_MAX_FILES = 2_000
_MAX_RANGES = 20_000  # of all files


class Reading:
    """Lines of documents, named ``collection/path``."""

    def __init__(self, lines: Mapping[str, Sequence[LineRange]] | None = None) -> None:
        self._lines: dict[str, list[LineRange]] = {}
        self._ranges = 0
        for file, ranges in (lines or {}).items():
            for first, last in ranges:
                self.add(file, first, last)

    def add(self, file: str, first: int, last: int) -> None:
        """Add lines; more than any run reads are not kept."""
        if last < first or self._ranges >= _MAX_RANGES:
            return
        if file not in self._lines and len(self._lines) >= _MAX_FILES:
            return
        ranges = self._lines.setdefault(file, [])
        if ranges and ranges[-1][0] <= first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
            return
        ranges.append((first, last))
        self._ranges += 1

    def merge(self, others: Iterable[Reading]) -> Reading:
        """These lines and those of others."""
        merged = Reading(self._lines)
        for other in others:
            for file, ranges in other._lines.items():
                for first, last in ranges:
                    merged.add(file, first, last)
        return merged

    def holds(self, file: str, first: int, last: int) -> bool:
        """Whether all lines from ``first`` to ``last`` were read."""
        at = first
        for begin, end in sorted(self._lines.get(file, ())):
            if begin > at:
                return False
            at = max(at, end + 1)
            if at > last:
                return True
        return False

    def as_json(self) -> dict[str, list[LineRange]]:
        return dict(self._lines)


def lines_read(reply: Reply) -> Reading:
    """
    The lines of documents in the reply of a tool: of `get`, `multi_get`, the searches, and of
    `read_note` where the notes are those of the collections.
    """
    reading = Reading()
    if reply.whole is not None:
        file, lines = reply.whole
        reading.add(file, 1, lines)
    for block in reply.blocks:
        if isinstance(block, DocumentBlock) and block.last_line:
            reading.add(block.document.file, block.first_line, block.last_line)
    results = (reply.structured or {}).get("results")
    for hit in results if isinstance(results, list) else ():
        _add_snippet(reading, hit)
    return reading


def _add_snippet(reading: Reading, hit: Any) -> None:
    """Add the lines ``N: text`` of a hit's snippet."""
    if not isinstance(hit, Mapping):
        return
    file, snippet = hit.get("file"), hit.get("snippet")
    if not isinstance(file, str) or not isinstance(snippet, str):
        return
    for line in snippet.split("\n"):
        number = line.partition(":")[0]
        if number.isdecimal() and len(number) < 8:
            reading.add(file, int(number), int(number))
