"""Counts the documents of tags."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.sql import Sql
from qmd.store.sqlite.filters import path_below, path_values
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types

#: The index of paths has the ids of a collection's documents; their rows are not read. The plus
#: keeps SQLite from reading the tags document by document.
_IN_COLLECTION = (
    " AND +t.document_id IN (SELECT d.id FROM documents d"
    " JOIN collections c ON c.id = d.collection_id WHERE c.name = ?)"
)
#: SQLite allows 500 parts of a UNION.
_TAGS_AT_ONCE = 200


class SqliteTags:
    """`qmd.store.tags.Tags` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def counts(self, prefix: str = "", *, collection: str | None = None) -> list[tuple[str, int]]:
        where, values = "1", list[object]()
        if prefix:
            where, values = path_below("t.tag"), path_values(prefix)
        if collection is not None:
            where += _IN_COLLECTION
            values.append(collection)
        rows = self._connection.execute(
            f"SELECT t.tag, count(*) FROM tags t WHERE {where} GROUP BY t.tag", values
        ).fetchall()
        for row in rows:
            require_types(row, str, int)
        return [(tag, count) for tag, count in rows]

    def count_below(self, tags: Sequence[str], *, collection: str | None = None) -> int:
        if len(tags) > _TAGS_AT_ONCE:
            raise ValueError(f"more than {_TAGS_AT_ONCE} spellings of one tag")
        condition = "" if collection is None else _IN_COLLECTION
        more = [] if collection is None else [collection]
        # An OR of both conditions would take three times as long.
        ranges = ("t.tag = ?", "t.tag > ? AND t.tag < ?")
        parts = [f"SELECT t.document_id FROM tags t WHERE {each}{condition}" for each in ranges]
        values: list[object] = []
        for tag in tags:
            values += [tag, *more, f"{tag}/", f"{tag}0", *more]
        row = self._connection.execute(
            "SELECT count(DISTINCT document_id) FROM ("
            + " UNION ALL ".join(parts * len(tags))
            + ")",
            values,
        ).fetchone()
        return int(row[0])
