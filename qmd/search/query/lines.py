"""
`query` with one line for each retriever::

    lex: wal checkpoint -vacuum
    vec: how are readers kept from blocking
    hyde: In WAL mode readers see a snapshot …
    intent: SQLite internals

A query has this form if its first non-blank line begins with one of these words, in upper or lower
case. A line that begins with none of them continues the line before it. If there is only an
intent, it is the question itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"\s*(lex|vec|hyde|intent)[:：](.*)", re.DOTALL | re.IGNORECASE)

#: The most lines of one kind; further ones are ignored.
MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class TypedLines:
    """
    A query of typed lines.

    Attributes:
        lexical: The texts for full text.
        semantic: The texts for the vectors.
        intent: What the query is about; None if no line says so.
    """

    lexical: tuple[str, ...]
    semantic: tuple[str, ...]
    intent: str | None


def parse_lines(query: str) -> TypedLines | None:
    """Parse a query of typed lines; None if it has another form, or all its lines are blank."""
    if _LINE.match(query) is None:
        return None
    texts = _texts_by_kind(query)
    lex, vec, hyde, intent = (
        tuple(dict.fromkeys(filter(None, texts[kind])))[:MAX_LINES]
        for kind in ("lex", "vec", "hyde", "intent")
    )
    if not (lex or vec or hyde):
        return TypedLines(intent, intent, None) if intent else None
    return TypedLines(lex, vec + hyde, " ".join(intent) or None)


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
