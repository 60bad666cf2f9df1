"""Reads and writes contexts: sentences of the user about all that lies below a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.errors import ContextNotFoundError
from qmd.store.sqlite import tables
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.values import Context


def _context(row: Sequence[Any]) -> Context:
    require_types(row, str | None, str | None, str, str)
    name, root, prefix, text = row
    path = "/" if name is None else root.rstrip("/") + ("/" + prefix if prefix else "")
    return Context(name, prefix, path, text)


_CONTEXTS = """
    SELECT c.name, c.path, x.prefix, x.text
    FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id
"""


class SqliteContexts:
    """`qmd.store.contexts.Contexts` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[Context]:
        rows = self._connection.execute(
            _CONTEXTS + "ORDER BY c.name IS NOT NULL, c.name, length(x.prefix), x.prefix"
        )
        return [_context(row) for row in rows]

    def _find(self, collection_id: int | None, prefix: str) -> Context:
        row = self._connection.execute(
            _CONTEXTS + "WHERE x.collection_id IS ? AND x.prefix = ?", [collection_id, prefix]
        ).fetchone()
        if row is None:
            raise ContextNotFoundError(
                "There is no context at that path.",
                hint="Run 'qmd context list' to see the paths that have one.",
            )
        return _context(row)


class SqliteContextsWriter(SqliteContexts):
    """`qmd.store.contexts.ContextsWriter` in SQLite."""

    def put(self, collection_id: int | None, prefix: str, text: str) -> Context:
        self._delete(collection_id, prefix)
        tables.table(self._connection, "contexts").insert(
            {
                "collection_id": collection_id,
                "prefix": prefix,
                "text": text,
                "created_at": clock.now(),
            }
        )
        return self._find(collection_id, prefix)

    def remove(self, collection_id: int | None, prefix: str) -> Context:
        context = self._find(collection_id, prefix)
        self._delete(collection_id, prefix)
        return context

    def _delete(self, collection_id: int | None, prefix: str) -> None:
        contexts = tables.table(self._connection, "contexts")
        contexts.delete_where("collection_id IS ? AND prefix = ?", [collection_id, prefix])
