"""
A literal in the text of a post, whatever its letter case.

Two texts are equal if their Unicode case foldings are: "ß" equals "SS", as "STRASSE" is the
upper case of "straße". Nothing else is folded: a full-width letter is none of ASCII.

Folding a text takes five times as long as looking through its bytes, so only those are folded
that hold a sign which makes a difference: none for a literal in Chinese, and for one with
letters of ASCII the few signs that fold to such letters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import AnyStr

from qmd.parse.lines import split_lines

#: All characters beyond ASCII whose case folding holds an ASCII letter: "ß" is "ss", "ﬁ" is "fi".
FOLDED_TO_ASCII = "ſ\u212aßẞİŉǰẖẗẘẙẚﬀﬁﬂﬃﬄﬅﬆ"


def caseless(sign: str) -> bool:
    """Whether no other text folds to this sign (perhaps False where none does)."""
    if not sign == sign.casefold() == sign.lower() == sign.upper():
        return False
    # Marks and modifier letters are what some letters fold to in part: "ŉ" is "ʼn".
    category = unicodedata.category(sign)
    return category[0] != "M" and category != "Lm"


class Literal:
    """What is looked for: any text but an empty one. One with a line end is in no line."""

    def __init__(self, text: str) -> None:
        self._text = _encoded(text)
        self._folded = text.casefold()
        self._folded_text = _encoded(self._folded)
        plain = "".join(sign if caseless(sign) else "\n" for sign in text)
        self._caseless = "\n" not in plain
        self._ascii = all(sign.isascii() or caseless(sign) for sign in self._folded)
        self._telling = _telling(self._folded)
        self._part = _encoded(max(plain.split("\n"), key=len))
        self._nowhere = "\n" in text or "\r" in text

    def lines(self, text: bytes) -> list[int]:
        """The numbers (from 1) of the lines of a UTF-8 text that hold the literal."""
        if self._nowhere or self._part not in text:
            return []
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._caseless:
            return _lines(text, self._text, b"\n")
        if self._ascii and (text.isascii() or not any(each in text for each in self._telling)):
            return _lines(text.lower(), self._folded_text, b"\n")
        return _lines(text.decode().casefold(), self._folded, "\n")

    def spans(self, line: str) -> list[tuple[int, int]]:
        """
        Where a line holds the literal, from left to right without overlaps.

        A sign that folds to several belongs to an occurrence as a whole. Each is the shortest
        that ends where it ends.
        """
        folded = line.casefold()
        origin: Sequence[int] = range(len(line))
        if len(folded) != len(line):  # a sign never folds to nothing
            origin = [at for at, sign in enumerate(line) for _ in sign.casefold()]
        spans: list[tuple[int, int]] = []
        start = folded.find(self._folded)
        while start >= 0:
            end = start + len(self._folded)
            last = origin[end - 1]
            while end < len(origin) and origin[end] == last:
                end += 1
            # In "Sß", folded to "sss", the shortest occurrence of "ss" begins at the second sign.
            start = folded.rfind(self._folded, start, end)
            spans.append((origin[start], last + 1))
            start = folded.find(self._folded, end)
        return spans


def around(text: bytes, line: int, lines: int) -> tuple[int, list[str]]:
    """A line of a UTF-8 text with ``lines`` on each side, and the number of the first of them."""
    every = split_lines(text.decode())
    first = max(line - lines, 1)
    return first, every[first - 1 : line + lines]


def _lines(text: AnyStr, literal: AnyStr, end: AnyStr) -> list[int]:
    lines: list[int] = []
    number, done = 1, 0
    start = text.find(literal)
    while start >= 0:
        number += text.count(end, done, start)
        lines.append(number)
        done = text.find(end, start)
        if done < 0:
            break
        start = text.find(literal, done)
    return lines


def _telling(folded: str) -> tuple[bytes, ...]:
    """Bytes of which a text holds some if it has a sign that folds to letters of this one."""
    signs = [sign for sign in FOLDED_TO_ASCII if not set(folded).isdisjoint(sign.casefold())]
    # The first byte tells enough, but for those that Chinese punctuation begins with, too.
    starts = [sign.encode() for sign in signs]
    return tuple(dict.fromkeys(each[: 2 if each[0] in (0xE2, 0xEF) else 1] for each in starts))


def _encoded(text: str) -> bytes:
    # No text holds a lone surrogate, so what becomes of one is in none.
    return text.encode("utf-8", "surrogatepass")
