"""The language of FTS5: match expressions in it, and the tokens that it makes of a text."""

from __future__ import annotations

import threading
from functools import cache, lru_cache

from qmd.store.full_text import Expression, Phrase
from qmd.store.sqlite.library import Connection, dbapi

#: https://sqlite.org/fts5.html#full_text_query_syntax
_OPERATORS = {"all": " AND ", "any": " OR ", "but not": " NOT "}
#: As in the statement that creates ``z_documents_fts`` (docs/schema.md).
TOKENIZE = "porter unicode61 remove_diacritics 2"
_lock = threading.Lock()


def render(expression: Expression) -> str:
    """An expression as FTS5 reads it; every text is quoted, so that no text is syntax."""
    if isinstance(expression, Phrase):
        return _phrase(expression)
    return _OPERATORS[expression.operator].join(map(_operand, expression.parts))


def _phrase(phrase: Phrase) -> str:
    quoted = '"' + phrase.text.replace('"', '""') + '"' + (" *" if phrase.prefix else "")
    return f"{{{' '.join(phrase.fields)}}} : {quoted}" if phrase.fields else quoted


def _operand(expression: Expression) -> str:
    """In brackets, but for a phrase in any field, which needs none."""
    text = render(expression)
    return text if isinstance(expression, Phrase) and not expression.fields else f"({text})"


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a text, in order: ``Running dogs`` gives ``run``, ``dog``."""
    with _lock:
        connection = _index()
        connection.execute("DELETE FROM texts")
        connection.execute("INSERT INTO texts (rowid, text) VALUES (1, ?)", [text])
        rows = connection.execute("SELECT term FROM tokens ORDER BY offset").fetchall()
    return tuple(term for (term,) in rows)


@cache
def _index() -> Connection:
    """A small full-text index in memory: it makes the tokens."""
    connection = dbapi.connect(
        ":memory:", factory=Connection, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = '{TOKENIZE}')")
    connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
    return connection
