"""
A literal in the text of a post, whatever its letter case.

Two texts are equal if their Unicode case foldings are: "ß" equals "SS", as "STRASSE" is the
upper case of "straße". Nothing else is folded: a full-width letter is none of ASCII.

Folding all texts would take five times longer than looking through them, so it is left out
where it changes nothing (Chinese), and where a part of the literal that only ASCII folds to
is missing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from qmd.parse.lines import split_lines

#: The ASCII letters that no other sign folds to: "s" is not among them ("ſ", "ß").
PLAIN = frozenset("bcdegmopqruvxz")


def caseless(char: str) -> bool:
    """Whether no other text folds to this sign (perhaps False where none does)."""
    if not char == char.casefold() == char.lower() == char.upper():
        return False
    # Marks and modifier letters are what some letters fold to in part: "ŉ" is "ʼn".
    category = unicodedata.category(char)
    return category[0] != "M" and category != "Lm"


class Literal:
    """What is looked for: any text but an empty one. One with a line end is in no line."""

    def __init__(self, text: str) -> None:
        self.folded = text.casefold()
        # A lone surrogate is in no text: then these bytes are neither.
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._caseless = all(map(caseless, text))
        self._part = _longest_part(self.folded).encode("utf-8", "surrogatepass")

    def lines(self, text: bytes) -> list[int]:
        """The numbers (from 1) of the lines of a UTF-8 text that hold the literal."""
        if self._caseless:
            wanted = self._bytes
            if wanted not in text:
                return []
            lines = _unix(text).split(b"\n")
            return [number for number, line in enumerate(lines, 1) if wanted in line]
        if self._part not in text.lower():
            return []
        folded = _unix(text).decode().casefold()
        if self.folded not in folded:
            return []
        return [number for number, line in enumerate(folded.split("\n"), 1) if self.folded in line]

    def spans(self, line: str) -> list[tuple[int, int]]:
        """
        Where a line holds the literal, from left to right without overlaps.

        A sign that folds to several belongs to an occurrence as a whole.
        """
        folded = line.casefold()
        origin: Sequence[int] = range(len(line))
        if len(folded) != len(line):  # a sign never folds to nothing
            origin = [at for at, sign in enumerate(line) for _ in sign.casefold()]
        found: list[tuple[int, int]] = []
        start = folded.find(self.folded)
        while start >= 0:
            end = start + len(self.folded)
            last = origin[end - 1]
            found.append((origin[start], last + 1))
            while end < len(origin) and origin[end] == last:
                end += 1
            start = folded.find(self.folded, end)
        return found


def shown(text: bytes, line: int, around: int) -> tuple[int, list[str]]:
    """The lines from ``around`` before a line to as many behind it, and the first one's number."""
    lines = split_lines(text.decode())
    first = max(line - around, 1)
    return first, lines[first - 1 : line + around]


def _unix(text: bytes) -> bytes:
    """With all line ends as "\\n"."""
    if b"\r" not in text:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _longest_part(folded: str) -> str:
    """The longest run of signs that a text in lower-case ASCII must hold as they are."""
    kept = "".join(sign if sign in PLAIN or caseless(sign) else "\0" for sign in folded)
    return max(kept.split("\0"), key=len)
