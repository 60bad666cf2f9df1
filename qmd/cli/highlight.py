"""Which parts of a snippet answer the query; for the eye only, so roughly."""

from __future__ import annotations

import re
from collections.abc import Callable

_PART = re.compile(r'(-?)(?:\w+:)?(?:"([^"]*)"|(\S+))')
_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_ENDING = re.compile(r"(?:ings?|ed|es|s|ly|e|y)$")
_LONGEST_LITERAL = 4  # a longer run of Chinese is a phrase or a question: mark its bigrams too


def highlighter(query: str, mark: Callable[[str], str]) -> Callable[[str], str]:
    """
    A function that marks in a text what the query asks for.

    Words match at the start of a word and with another ending, as the stemmer has it; Chinese
    anywhere, a long run also by its bigrams.
    """
    patterns: list[str] = []
    for negated, phrase, word in _PART.findall(query):
        if negated or word in ("OR", "AND", "NOT"):
            continue
        for piece in re.findall(r"\w+", phrase or word):
            patterns.extend(_patterns(piece))
    if not patterns:
        return lambda text: text
    patterns.sort(key=len, reverse=True)
    wanted = re.compile("(?:" + "|".join(patterns) + ")+", re.IGNORECASE)
    return lambda text: wanted.sub(lambda match: mark(match[0]), text)


def _patterns(piece: str) -> list[str]:
    found = []
    for run in _CJK_RUN.findall(piece):
        found.append(re.escape(run))
        if len(run) > _LONGEST_LITERAL:
            found.extend(re.escape(run[i : i + 2]) for i in range(len(run) - 1))
    for word in _CJK_RUN.sub(" ", piece).split():
        stem = _ENDING.sub("", word)
        if len(stem) >= 3 and stem.isascii():
            found.append(rf"(?<![^\W_]){re.escape(stem)}[a-zA-Z]{{0,4}}(?![a-zA-Z])")
        else:
            found.append(rf"(?<![^\W_]){re.escape(word)}(?![a-zA-Z0-9])")
    return found
