"""Reads and writes contexts: sentences of the user about all that lies below a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.errors import ContextNotFoundError
from qmd.store.postgres.library import Connection
from qmd.system import clock
from qmd.values import Context


def _context(row: Sequence[Any]) -> Context:
    name, root, prefix, text = row
    path = "/" if name is None else root.rstrip("/") + ("/" + prefix if prefix else "")
    return Context(name, prefix, path, text)


_CONTEXTS = """
    SELECT c.name, c.path, x.prefix, x.text
    FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id
"""


class PostgresContexts:
    """`qmd.store.contexts.Contexts` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[Context]:
        rows = self._connection.execute(
            _CONTEXTS + "ORDER BY c.name IS NOT NULL, c.name, length(x.prefix), x.prefix"
        )
        return [_context(row) for row in rows]

    def _find(self, collection_id: int | None, prefix: str) -> Context:
        row = self._connection.execute(
            _CONTEXTS + "WHERE x.collection_id IS NOT DISTINCT FROM %s AND x.prefix = %s",
            [collection_id, prefix],
        ).fetchone()
        if row is None:
            raise ContextNotFoundError(
                "There is no context at that path.",
                hint="Run 'qmd context list' to see the paths that have one.",
            )
        return _context(row)


class PostgresContextsWriter(PostgresContexts):
    """`qmd.store.contexts.ContextsWriter` in PostgreSQL."""

    def put(self, collection_id: int | None, prefix: str, text: str) -> Context:
        self._delete(collection_id, prefix)
        self._connection.execute(
            "INSERT INTO contexts (collection_id, prefix, text, created_at)"
            " VALUES (%s, %s, %s, %s)",
            [collection_id, prefix, text, clock.now()],
        )
        return self._find(collection_id, prefix)

    def remove(self, collection_id: int | None, prefix: str) -> Context:
        context = self._find(collection_id, prefix)
        self._delete(collection_id, prefix)
        return context

    def _delete(self, collection_id: int | None, prefix: str) -> None:
        self._connection.execute(
            "DELETE FROM contexts WHERE collection_id IS NOT DISTINCT FROM %s AND prefix = %s",
            [collection_id, prefix],
        )
