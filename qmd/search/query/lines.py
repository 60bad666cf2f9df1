"""
`query` with one line for each retriever::

    lex: wal checkpoint -vacuum
    vec: how are readers kept from blocking
    hyde: In WAL mode readers see a snapshot …
    intent: SQLite internals

A string has this form when its first line that is not blank begins with one of these words, in
any letter case; a line that does not goes on with the one before it. An intent alone is the
question itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"\s*(lex|vec|hyde|intent)[:：](.*)", re.DOTALL | re.IGNORECASE)

#: Lines beyond this many of one kind are left out.
MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class TypedLines:
    """The texts for full text, those for the vectors, in order, and what the query is about."""

    lexical: tuple[str, ...]
    semantic: tuple[str, ...]
    intent: str | None


def parse_lines(query: str) -> TypedLines | None:
    """None where the query is not written in such lines, or all of them are blank."""
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
