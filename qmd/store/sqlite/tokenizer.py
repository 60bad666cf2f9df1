"""The tokens that the full-text index makes of a text, by a small full-text index in memory."""

from __future__ import annotations

import threading
from functools import cache, lru_cache

from qmd.store.sqlite.library import Connection, dbapi

#: As in the statement that creates ``z_documents_fts`` (docs/schema.md).
TOKENIZE = "porter unicode61 remove_diacritics 2"
_lock = threading.Lock()


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
    connection = dbapi.connect(
        ":memory:", factory=Connection, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = '{TOKENIZE}')")
    connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
    return connection
