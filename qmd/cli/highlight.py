"""Marks in a text what the query asks for; for the eye only."""

from __future__ import annotations

import re
from collections.abc import Callable

from qmd.search.language import parse
from qmd.search.lexical import STOP_WORDS
from qmd.search.snippet import Needle, needles


def highlighter(query: str, mark: Callable[[str], str]) -> Callable[[str], str]:
    """
    A function that marks the parts of a text which the snippet was chosen for.

    Words are marked from their start and to their end, whatever the ending; Chinese anywhere.
    """
    wanted = needles(parse(query))
    # Marking every "the" would hide the rest.
    loud = [needle for needle in wanted if needle.text not in STOP_WORDS] or wanted
    if not loud:
        return lambda text: text
    patterns = map(_pattern, sorted(loud, key=lambda needle: -len(needle.text)))
    found = re.compile("(?:" + "|".join(patterns) + ")+", re.IGNORECASE)
    return lambda text: found.sub(lambda match: mark(match[0]), text)


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
