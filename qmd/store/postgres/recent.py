"""Lists the documents whose files changed last."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.postgres.documents import PostgresDocuments
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.recent import RecentDocument
from qmd.store.sql import Sql


class PostgresRecent:
    """`qmd.store.recent.Recent` in PostgreSQL. Each collection is a range of one index."""

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
                " WHERE collection_id = %s AND modified_at >= %s"
                " ORDER BY modified_at DESC, id LIMIT %s",
                [collection_id, since or "", limit],
            )
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse=True)
        return self._with_facts([document_id for _, document_id in rows[:limit]])

    def _with_facts(self, document_ids: list[int]) -> list[RecentDocument]:
        rows = self._connection.execute(
            "SELECT d.id, c.path || '/' || d.path, d.hash, d.encoding, d.indexed_at"
            " FROM documents d JOIN collections c ON c.id = d.collection_id"
            " WHERE d.id = ANY(%s)",
            [document_ids],
        ).fetchall()
        facts = {document_id: values for document_id, *values in rows}
        documents = PostgresDocuments(self._sql).by_ids(document_ids)
        return [RecentDocument(document, *facts[document.id]) for document in documents]

    def count_since(self, collection_ids: Sequence[int], since: str | None = None) -> int:
        return sum(
            one(
                self._connection,
                "SELECT count(*) FROM documents WHERE collection_id = %s AND modified_at >= %s",
                [collection_id, since or ""],
            )[0]
            for collection_id in collection_ids
        )
