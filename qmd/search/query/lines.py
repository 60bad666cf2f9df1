"""
`query` with one line for each retriever::

    lex: wal checkpoint -vacuum
    vec: how are readers kept from blocking
    hyde: In WAL mode readers see a snapshot …
    intent: SQLite internals

A string is read so when its first line that is not blank begins with one of these words, in
any letter case; a line that does not goes on with the one before it. An intent alone is what
is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"\s*(lex|vec|hyde|intent)[:：](.*)", re.DOTALL | re.IGNORECASE)

#: Lines beyond this many of one kind are left out.
MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """What goes to full text, what to the vectors, in order, and what it is all about."""

    words: tuple[str, ...]
    meanings: tuple[str, ...]
    intent: str | None


def read(query: str) -> Asked | None:
    """None where the query is not written in such lines, or these say nothing."""
    if _LINE.match(query) is None:
        return None
    texts: dict[str, list[str]] = {"lex": [], "vec": [], "hyde": [], "intent": []}
    current: list[str] = []
    for line in query.splitlines():
        typed = _LINE.match(line)
        if typed is not None:
            current = texts[typed[1].lower()]
            current.append(typed[2].strip())
        elif line.strip():
            current[-1] = f"{current[-1]} {line.strip()}".strip()
    lex, vec, hyde, intent = (
        tuple(dict.fromkeys(filter(None, found)))[:MAX_LINES] for found in texts.values()
    )
    if not (lex or vec or hyde):
        return Asked(intent, intent, None) if intent else None
    return Asked(lex, vec + hyde, " ".join(intent) or None)
