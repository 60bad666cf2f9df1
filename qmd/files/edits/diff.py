"""Compares two texts line by line, and merges two edits of one text."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

_CONTEXT_LINES = 3
#: The old number of lines times the new one; difflib takes too long for more.
_MOST_COMPARED = 250_000
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
#: The most lines, and characters in a line, of `short_diff`.
MAX_LINES, MAX_LINE_CHARACTERS = 200, 500


def diff_lines(before: str, after: str) -> list[str]:
    """
    A unified diff without the lines that name the files; empty if the texts are equal.

    Lines that are the same at both ends of the texts are cut off before the comparison. If the
    rest is still too long to compare, one hunk replaces all of it.
    """
    return _diff(split_lines(before), split_lines(after))


def short_diff(before: str, after: str) -> str:
    """
    `diff_lines` for a reply, at most `MAX_LINES` lines; its last line says what is left out.

    Line ends are all shown as ``\\n``, unless nothing else differs.
    """
    plain_before, plain_after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    if plain_before == plain_after and before != after:
        plain_before, plain_after = before.replace("\r", "\\r"), after.replace("\r", "\\r")
    lines = diff_lines(plain_before, plain_after)
    shown = [
        line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"
        for line in lines[:MAX_LINES]
    ]
    if len(lines) > MAX_LINES:
        shown.append(f"… {len(lines) - MAX_LINES:,} more lines")
    return "".join(f"{line}\n" for line in shown)


def split_lines(text: str) -> list[str]:
    """
    Split a text at newlines only (`str.splitlines` splits at more characters).

    A last line without a newline gets the remark that diffs have for it.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def single_lines(lines: Iterable[str]) -> list[str]:
    """The lines, those that hold a remark after a newline as two."""
    return [part for line in lines for part in line.split("\n")]


def _diff(before: list[str], after: list[str]) -> list[str]:
    shortest = min(len(before), len(after))
    same_start = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    rest = shortest - same_start
    same_end = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    cut_start = max(0, same_start - _CONTEXT_LINES)
    cut_end = max(0, same_end - _CONTEXT_LINES)
    old, new = before[cut_start : len(before) - cut_end], after[cut_start : len(after) - cut_end]
    if len(old) * len(new) > _MOST_COMPARED:
        middle = slice(same_start - cut_start, -(same_end - cut_end) or None)
        hunk = [f"@@ -{cut_start + 1},{len(old)} +{cut_start + 1},{len(new)} @@"]
        hunk += [f" {line}" for line in old[: same_start - cut_start]]
        hunk += [f"-{line}" for line in old[middle]] + [f"+{line}" for line in new[middle]]
        hunk += [f" {line}" for line in old[len(old) - (same_end - cut_end) :]]
        return single_lines(hunk)
    unified = difflib.unified_diff(old, new, n=_CONTEXT_LINES, lineterm="")
    return single_lines(_shifted_hunk(line, cut_start) for line in list(unified)[2:])


def _shifted_hunk(line: str, offset: int) -> str:
    """Add ``offset`` to the line numbers in a hunk's header; other lines stay as they are."""
    hunk = _HUNK.fullmatch(line)
    if hunk is None:
        return line
    old_start, new_start = int(hunk[1]) + offset, int(hunk[3]) + offset
    return f"@@ -{old_start}{hunk[2] or ''} +{new_start}{hunk[4] or ''} @@"


# --- the merge of two edits -------------------------------------------------------------
# The algorithm is diff3 (Khanna, Kunal and Pierce, "A Formal Investigation of Diff3", 2007): lines
# that both edits kept divide the texts; between two of them, a part that only one edit has changed
# is taken from that edit. Lines that both changed are a conflict, which a person decides.

PartKind = Literal["same", "mine", "theirs", "both", "conflict"]
Choice = Literal["mine", "theirs", "both"]

#: The old lines times the new ones between two anchors that are compared one with each other.
_MAX_COMPARED = 40_000
#: The comparisons in one call of `_kept`, so that its time is bounded (0.1 µs each).
_MOST_MERGED = 4_000_000

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """
    A run of lines in the three texts.

    Attributes:
        kind: "same": nobody changed it; "mine", "theirs": one edit did; "both": both made the same
            change; "conflict": they made different ones.
        base: The lines as they were; empty in a conflict if that is not known.
    """

    kind: PartKind
    base: str
    mine: str
    theirs: str


def merge(base: str | None, mine: str, theirs: str) -> list[Part]:
    """
    The parts of three texts, in their order.

    Args:
        base: The text before both edits; None if it is not known. Then each difference is a
            conflict.
    """
    new_mine, new_theirs = _lines(mine), _lines(theirs)
    if base is None:
        pairs = list(_kept(new_mine, new_theirs))
        old = [new_mine[at] for at, _ in pairs]
        kept = [(number, *pair) for number, pair in enumerate(pairs)]
    else:
        old = _lines(base)
        in_mine, in_theirs = dict(_kept(old, new_mine)), dict(_kept(old, new_theirs))
        kept = [(at, in_mine[at], in_theirs[at]) for at in sorted(in_mine) if at in in_theirs]
    parts = _Parts()
    before = (0, 0, 0)
    for place in (*kept, (len(old), len(new_mine), len(new_theirs))):
        spans = tuple(slice(start, end) for start, end in zip(before, place, strict=True))
        runs = old[spans[0]], new_mine[spans[1]], new_theirs[spans[2]]
        part = _changed(*map("".join, runs))
        parts.add(replace(part, kind="conflict") if base is None and runs != ([], [], []) else part)
        if place[0] < len(old):
            line = old[place[0]]
            parts.add(Part("same", line, line, line))
        before = (place[0] + 1, place[1] + 1, place[2] + 1)
    return parts.finished()


def conflicts(parts: list[Part]) -> int:
    """How many parts a person has to decide."""
    return sum(part.kind == "conflict" for part in parts)


def merged_text(parts: list[Part], choices: Mapping[int, Choice] | None = None) -> str:
    """
    The text with both edits.

    Args:
        choices: The number of a conflict (from 0) → what to take; "mine" for those without one.
    """
    pieces: list[str] = []
    number = 0
    for part in parts:
        taken: Choice = "theirs" if part.kind == "theirs" else "mine"
        if part.kind == "conflict":
            taken = (choices or {}).get(number, "mine")
            number += 1
        if taken == "both":
            mine = part.mine
            if mine and part.theirs and not mine.endswith("\n"):
                mine += "\n"
            pieces += [mine, part.theirs]
        else:
            pieces.append(part.theirs if taken == "theirs" else part.mine)
    return "".join(pieces)


def kept_lines(before: str, after: str) -> list[Pair]:
    """The lines (split at ``\\n``, counted from 0) that stay the same: old and new number."""
    return list(_kept(_lines(before), _lines(after)))


def _changed(base: str, mine: str, theirs: str) -> Part:
    if mine == theirs:
        return Part("same" if mine == base else "both", base, mine, theirs)
    if mine == base:
        return Part("theirs", base, mine, theirs)
    return Part("mine" if theirs == base else "conflict", base, mine, theirs)


class _Parts:
    """Collects parts; lines that are the same and follow each other are one part."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._same: list[str] = []

    def add(self, part: Part) -> None:
        if part.kind == "same":
            self._same.append(part.base)
        elif part.base or part.mine or part.theirs:
            self.finished().append(part)

    def finished(self) -> list[Part]:
        same = "".join(self._same)
        self._same.clear()
        if same:
            self._parts.append(Part("same", same, same, same))
        return self._parts


# --- which lines were kept ---------------------------------------------------------------


def _lines(text: str) -> list[str]:
    """The lines with their ends (`str.splitlines` splits at more characters)."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _kept(old: list[str], new: list[str]) -> Iterator[Pair]:
    """
    The numbers of equal lines in the same order, as many as is affordable.

    Long texts are first divided at the lines that occur once in both ("patience diff").
    """
    left = _MOST_MERGED
    start = (0, 0)
    for end in (*_anchors(old, new), (len(old), len(new))):
        (a, b), (c, d) = start, end
        while a < c and b < d and old[a] == new[b]:
            yield a, b
            a, b = a + 1, b + 1
        tail = 0
        while a < c - tail and b < d - tail and old[c - tail - 1] == new[d - tail - 1]:
            tail += 1
        size = (c - tail - a) * (d - tail - b)
        if size <= _MAX_COMPARED and size <= left:
            left -= size
            for i, j in _common(old[a : c - tail], new[b : d - tail]):
                yield a + i, b + j
        yield from ((c - back, d - back) for back in range(tail, 0, -1))
        if c < len(old):
            yield end
        start = (c + 1, d + 1)


def _anchors(old: list[str], new: list[str]) -> list[Pair]:
    """The longest run of lines that occur once in both texts, in the order of both."""
    if len(old) * len(new) <= _MAX_COMPARED:
        return []
    in_old, in_new = Counter(old), Counter(new)
    place = {line: number for number, line in enumerate(new) if in_new[line] == 1}
    pairs = [
        (number, place[line])
        for number, line in enumerate(old)
        if in_old[line] == 1 and line in place
    ]
    ends: list[int] = []  # for each length, the smallest new line at which such a run ends
    last: list[int] = []  # for each length, the pair at its end
    before: list[int] = []  # for each pair, the pair before it in its run
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(at)
            last.append(number)
        else:
            ends[length], last[length] = at, number
    run: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _common(old: list[str], new: list[str]) -> Iterator[Pair]:
    """The longest common subsequence, by dynamic programming."""
    if not old or not new:
        return
    rows = [[0] * (len(new) + 1)]  # rows[-1 - i][j]: the length for old[i:] and new[j:]
    for line in reversed(old):
        below = rows[-1]
        row = [0] * (len(new) + 1)
        for j in range(len(new) - 1, -1, -1):
            if line == new[j]:
                row[j] = below[j + 1] + 1
            else:
                row[j] = max(below[j], row[j + 1])
        rows.append(row)
    rows.reverse()
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i] == new[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
