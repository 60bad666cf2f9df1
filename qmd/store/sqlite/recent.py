"""Lists the documents whose files changed last."""

from __future__ import annotations

import json
from collections.abc import Sequence

from qmd.store.recent import RecentDocument
from qmd.store.sql import Sql
from qmd.store.sqlite.documents import SqliteDocuments
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types


class SqliteRecent:
    """`qmd.store.recent.Recent` in SQLite. Each collection is a range of one index."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def latest(
        self, collection_ids: Sequence[int], *, since: str | None = None, limit: int
    ) -> list[RecentDocument]:
        rows: list[tuple[str, int]] = []
        for collection_id in collection_ids:
            rows += self._connection.execute(
                "SELECT modified_at, id FROM documents"
                " WHERE collection_id = ? AND modified_at >= ?"
                " ORDER BY modified_at DESC, id LIMIT ?",
                [collection_id, since or "", limit],
            )
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse=True)
        return self._with_facts([document_id for _, document_id in rows[:limit]])

    def _with_facts(self, document_ids: list[int]) -> list[RecentDocument]:
        rows = self._connection.execute(
            "SELECT d.id, c.path || '/' || d.path, d.hash, d.encoding, d.indexed_at"
            " FROM documents d JOIN collections c ON c.id = d.collection_id"
            " WHERE d.id IN (SELECT value FROM json_each(?))",
            [json.dumps(document_ids)],
        ).fetchall()
        for row in rows:
            require_types(row, int, str, str, str, str)
        facts = {document_id: values for document_id, *values in rows}
        documents = SqliteDocuments(self._sql).by_ids(document_ids)
        return [RecentDocument(document, *facts[document.id]) for document in documents]

    def count_since(self, collection_ids: Sequence[int], since: str | None = None) -> int:
        return sum(
            self._connection.execute(
                "SELECT count(*) FROM documents WHERE collection_id = ? AND modified_at >= ?",
                [collection_id, since or ""],
            ).fetchone()[0]
            for collection_id in collection_ids
        )
