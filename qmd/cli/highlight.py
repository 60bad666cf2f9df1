"""Marks in a text what the query asks for; for the eye only."""

from __future__ import annotations

import re
from collections.abc import Callable

from qmd.search.present.snippet import Needle, needles
from qmd.search.query.language import parse
from qmd.search.words.weights import STOP_WORDS


def highlighter(query: str, mark: Callable[[str], str]) -> Callable[[str], str]:
    """
    A function that marks the parts of a text which the snippet was chosen for.

    Words are marked from their start and to their end, whatever the ending; Chinese anywhere.
    """
    query_needles = needles(parse(query))
    # Marking every "the" would hide the rest.
    loud = [needle for needle in query_needles if needle.text not in STOP_WORDS] or query_needles
    if not loud:
        return lambda text: text
    patterns = map(_pattern, sorted(loud, key=lambda needle: -len(needle.text)))
    # A lookahead finds matches that overlap: 数据库 is 数据 and 据库.
    pattern = re.compile("(?=(" + "|".join(patterns) + "))", re.IGNORECASE)

    def marked(text: str) -> str:
        pieces, end = [], 0
        for start, stop in _spans(pattern, text):
            pieces += [text[end:start], mark(text[start:stop])]
            end = stop
        return "".join(pieces) + text[end:]

    return marked


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """The matches in order; those that touch are one span."""
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        start, stop = match.span(1)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        elif stop > start:
            spans.append((start, stop))
    return spans


def _pattern(needle: Needle) -> str:
    text = needle.text
    pattern = re.escape(text)
    if not text.isascii():
        return pattern
    if text[0].isalnum():
        pattern = rf"(?<![a-zA-Z0-9]){pattern}"
    if len(text) > 2 and text.isalpha():
        return rf"{pattern}[a-zA-Z]{{0,4}}(?![a-zA-Z])"
    return rf"{pattern}(?![a-zA-Z0-9])" if text[-1].isalnum() else pattern
