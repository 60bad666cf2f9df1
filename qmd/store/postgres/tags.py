"""Counts the documents of tags."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.sql import Sql

#: A tag in any of the given spellings, or below one; bind tags, "tag/" of each, "tag0" of each.
_IS_OR_BELOW = """
    (t.tag_key = ANY(%s) OR EXISTS (
        SELECT 1 FROM unnest(%s::text[], %s::text[]) AS r (low, high)
        WHERE left(t.tag_key, 500) COLLATE "C" >= r.low AND left(t.tag_key, 500) < r.high))
"""
_IN_COLLECTION = (
    " AND t.document_id IN (SELECT d.id FROM documents d"
    " JOIN collections c ON c.id = d.collection_id WHERE c.name = %s)"
)


class PostgresTags:
    """`qmd.store.tags.Tags` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def counts(self, prefix: str = "", *, collection: str | None = None) -> list[tuple[str, int]]:
        where, values = _where([prefix] if prefix else [], collection)
        rows = self._connection.execute(
            "SELECT min(t.tag), count(*) FROM tags t"
            f" WHERE {where} GROUP BY t.tag_key ORDER BY t.tag_key",
            values,
        )
        return [(tag, count) for tag, count in rows]

    def count_below(self, tags: Sequence[str], *, collection: str | None = None) -> int:
        where, values = _where(tags, collection)
        sql = f"SELECT count(DISTINCT t.document_id) FROM tags t WHERE {where}"
        return int(one(self._connection, sql, values)[0])


def _where(tags: Sequence[str], collection: str | None) -> tuple[str, list[object]]:
    where, values = "true", list[object]()
    if tags:
        keys = [tag_key(tag) for tag in tags]
        where = _IS_OR_BELOW
        values = [keys, [f"{key}/" for key in keys], [f"{key}0" for key in keys]]
    if collection is not None:
        where += _IN_COLLECTION
        values.append(collection)
    return where, values


def tag_key(tag: str) -> str:
    """As the column ``tag_key``: ASCII letters in lower case."""
    return "".join(char.lower() if char.isascii() else char for char in tag)
