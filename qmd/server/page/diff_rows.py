"""A difference of two texts as rows of a page, with the words that changed marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal, NamedTuple

from qmd.files.edits.diff import MAX_LINE_CHARACTERS, diff_lines

MAX_ROWS = 600
"""Rows that are shown of one difference."""

_MAX_COMPARISONS = 20_000  # words of a line times those of the other
_LEAST_ALIKE = 0.4  # below, two lines are shown as two lines
_WORD = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+|\s+|.", re.DOTALL)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Piece(NamedTuple):
    """A piece of a line; ``is_changed`` if the other line has something else there."""

    text: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class DiffRow:
    """
    A row: a line that was removed, added or is the same, or where the next lines stand.

    Attributes:
        line: Its number in the text that has it; 0 for a remark.
    """

    kind: Literal["removed", "added", "same", "place"]
    line: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """``left_out``: rows that are not shown. ``added`` and ``removed`` count lines."""

    rows: tuple[DiffRow, ...]
    added: int
    removed: int
    left_out: int


def diff_rows(before: str, after: str) -> ShownDiff:
    """The difference of two texts; line ends are compared as ``\\n``."""
    lines = diff_lines(before.replace("\r\n", "\n"), after.replace("\r\n", "\n"))
    rows = list(_rows(lines[:MAX_ROWS]))
    return ShownDiff(
        tuple(rows),
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
        max(0, len(lines) - MAX_ROWS),
    )


def _rows(lines: Sequence[str]) -> Iterator[DiffRow]:
    old = new = 0
    removed: list[str] = []
    added: list[str] = []
    for line in [*lines, ""]:
        sign, text = line[:1], line[1:]
        if sign == "-":
            removed.append(text)
            continue
        if sign == "+":
            added.append(text)
            continue
        yield from _changed(removed, added, old, new)
        old, new = old + len(removed), new + len(added)
        removed, added = [], []
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            yield DiffRow("place", new or old, ())
        elif sign == "\\":
            yield DiffRow("place", 0, (Piece(text.strip()),))
        elif line:
            yield DiffRow("same", new, (Piece(_cut(text)),))
            old, new = old + 1, new + 1


def _changed(removed: Sequence[str], added: Sequence[str], old: int, new: int) -> Iterator[DiffRow]:
    """The removed lines, then those in their place, with the words marked that differ."""
    pairs = [_pieces(a, b) for a, b in zip_longest(removed, added)]
    for at in range(len(removed)):
        yield DiffRow("removed", old + at, pairs[at][0])
    for at in range(len(added)):
        yield DiffRow("added", new + at, pairs[at][1])


def _pieces(a: str | None, b: str | None) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    whole = (Piece(_cut(a or "")),), (Piece(_cut(b or "")),)
    if a is None or b is None or max(len(a), len(b)) > MAX_LINE_CHARACTERS:
        return whole
    old, new = _WORD.findall(a), _WORD.findall(b)
    if len(old) * len(new) > _MAX_COMPARISONS:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return whole
    left, right = [], []
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        is_changed = kind != "equal"
        left.append(Piece("".join(old[a0:a1]), is_changed))
        right.append(Piece("".join(new[b0:b1]), is_changed))
    return tuple(filter(_has_text, left)), tuple(filter(_has_text, right))


def _has_text(piece: Piece) -> bool:
    return bool(piece.text)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"
