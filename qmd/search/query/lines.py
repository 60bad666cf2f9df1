"""
Parse a query that has one line for each retriever::

    lex: wal checkpoint -vacuum
    vec: how are readers kept from blocking
    hyde: In WAL mode readers see a snapshot …
    intent: SQLite internals

A query has this form if its first non-blank line begins with one of these words, in upper or lower
case. A line that begins with none of them continues the line before it. If there is only an
intent, it is searched for itself.

A query may also begin with ``expand:``, as tobi/qmd writes one that the expander words in other
ways. That is what happens to every query without typed lines, so the word is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"\s*(lex|vec|hyde|intent)[:：](.*)", re.DOTALL | re.IGNORECASE)

_EXPAND = re.compile(r"\s*expand[:：]\s*", re.IGNORECASE)

#: The most lines of one kind; further ones are ignored.
MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class TypedLines:
    """
    A query of typed lines.

    Attributes:
        lexical: The texts for full text.
        semantic: The texts for the vectors.
        intent: The subject of the query; None if no line gives it.
    """

    lexical: tuple[str, ...]
    semantic: tuple[str, ...]
    intent: str | None


def without_expand(query: str) -> str:
    """The query without the word ``expand:`` that it begins with, if something stands behind it."""
    match = _EXPAND.match(query)
    return query[match.end() :] if match and query[match.end() :].strip() else query


def parse_lines(query: str) -> TypedLines | None:
    """Parse a query of typed lines; None if it has another form, or all its lines are blank."""
    if _LINE.match(query) is None:
        return None
    texts = _texts_by_kind(query)
    lexical, vector, hypothetical, intent = (
        tuple(dict.fromkeys(filter(None, texts[kind])))[:MAX_LINES]
        for kind in ("lex", "vec", "hyde", "intent")
    )
    if not (lexical or vector or hypothetical):
        return TypedLines(intent, intent, None) if intent else None
    return TypedLines(lexical, vector + hypothetical, " ".join(intent) or None)


def _texts_by_kind(query: str) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {"lex": [], "vec": [], "hyde": [], "intent": []}
    current: list[str] = []
    for line in query.splitlines():
        typed = _LINE.match(line)
        if typed is not None:
            current = texts[typed[1].lower()]
            current.append(typed[2].strip())
        elif line.strip():
            current[-1] = f"{current[-1]} {line.strip()}".strip()
    return texts
