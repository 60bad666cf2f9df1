"""The difference of two texts, as a unified diff whose cost and length are bounded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CONTEXT_LINES = 3
#: The old number of lines times the new one; difflib takes too long for more.
_MAX_COMPARISONS = 250_000
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
    if len(old) * len(new) > _MAX_COMPARISONS:
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
