"""Finds the words of a query in the text of hits, for the faces to highlight."""

from __future__ import annotations

import re
from collections.abc import Callable

from qmd.search.present.snippet import needles
from qmd.search.query.language import parse
from qmd.search.words.weights import STOP_WORDS


def highlighter(query: str, mark: Callable[[str], str]) -> Callable[[str], str]:
    """
    Give a function that marks the words of ``query`` in a text.

    A word must begin where a word of the text begins; a different ending of up to four letters
    is marked too. Chinese characters are marked anywhere.
    """
    split = splitter(query)

    def marked(text: str) -> str:
        return "".join(mark(part) if is_match else part for part, is_match in split(text))

    return marked


def splitter(query: str) -> Callable[[str], list[tuple[str, bool]]]:
    """Give a function that splits a text into parts, and says of each whether to mark it."""
    query_needles = needles(parse(query))
    # Marking every "the" would hide the other marks.
    content_needles = [needle for needle in query_needles if needle not in STOP_WORDS]
    marked_needles = content_needles or list(query_needles)
    if not marked_needles:
        return lambda text: [(text, False)]
    patterns = map(_pattern, sorted(marked_needles, key=len, reverse=True))
    # A lookahead finds matches that overlap: 数据库 is 数据 and 据库.
    pattern = re.compile("(?=(" + "|".join(patterns) + "))", re.IGNORECASE)

    def split(text: str) -> list[tuple[str, bool]]:
        parts, end = [], 0
        for start, stop in _spans(pattern, text):
            parts += [(text[end:start], False), (text[start:stop], True)]
            end = stop
        return [(part, is_match) for part, is_match in [*parts, (text[end:], False)] if part]

    return split


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """The spans of the matches in order; matches that overlap or touch are one span."""
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        start, stop = match.span(1)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        elif stop > start:
            spans.append((start, stop))
    return spans


def _pattern(text: str) -> str:
    pattern = re.escape(text)
    if not text.isascii():
        return pattern
    if text[0].isalnum():
        pattern = rf"(?<![a-zA-Z0-9]){pattern}"
    if len(text) > 2 and text.isalpha():
        return rf"{pattern}[a-zA-Z]{{0,4}}(?![a-zA-Z])"
    return rf"{pattern}(?![a-zA-Z0-9])" if text[-1].isalnum() else pattern
