"""Contexts: descriptions that people give to everything below a path."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.errors import ContextNotFoundError
from qmd.store.sql import Sql
from qmd.system import clock
from qmd.values import Context

_CONTEXTS = """
    SELECT c.name, c.path, x.prefix, x.text
    FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id
"""


_TYPES = (str | None, str | None, str, str)
_AT_PLACE = "x.collection_id IS NOT DISTINCT FROM ? AND x.prefix = ?"


class Contexts:
    """Reads contexts."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def all(self) -> list[Context]:
        """All contexts, from the global one to the most specific."""
        return self._contexts("ORDER BY c.name IS NOT NULL, c.name, length(x.prefix), x.prefix")

    def _contexts(self, clauses: str, values: Sequence[object] = ()) -> list[Context]:
        return [
            Context(name, prefix, _path(root, prefix), text)
            for name, root, prefix, text in self._sql.rows(_TYPES, _CONTEXTS + clauses, values)
        ]

    def _find(self, collection_id: int | None, prefix: str) -> Context:
        contexts = self._contexts(f"WHERE {_AT_PLACE}", [collection_id, prefix])
        if not contexts:
            raise ContextNotFoundError(
                "There is no context at that path.",
                hint="Run 'qmd context list' to see the paths that have one.",
            )
        return contexts[0]


class ContextsWriter(Contexts):
    """
    Changes contexts.

    A place is a collection (None: all of them) and a path below it ("": the root).
    """

    def put(self, collection_id: int | None, prefix: str, text: str) -> Context:
        """Add a context, or replace the text of the one at that place."""
        self._delete(collection_id, prefix)
        self._sql.run(
            "INSERT INTO contexts (collection_id, prefix, text, created_at) VALUES (?, ?, ?, ?)",
            [collection_id, prefix, text, clock.now()],
        )
        return self._find(collection_id, prefix)

    def remove(self, collection_id: int | None, prefix: str) -> Context:
        """
        Remove the context at a place, and return it.

        Raises:
            ContextNotFoundError: The place has no context.
        """
        context = self._find(collection_id, prefix)
        self._delete(collection_id, prefix)
        return context

    def _delete(self, collection_id: int | None, prefix: str) -> None:
        self._sql.run(f"DELETE FROM contexts AS x WHERE {_AT_PLACE}", [collection_id, prefix])


def _path(root: str | None, prefix: str) -> str:
    if root is None:
        return "/"
    return root.rstrip("/") + ("/" + prefix if prefix else "")
