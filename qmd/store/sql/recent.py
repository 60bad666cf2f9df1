"""The documents whose files changed last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qmd.store.sql import Capability, Row
from qmd.store.sql.documents import Documents
from qmd.store.sql.filters import Selection
from qmd.values import DocumentInfo


class RecentDocument(NamedTuple):
    """
    A document with what tells who wrote its file.

    Attributes:
        absolute_path: On the disk; links in it are not followed.
        hash: SHA-256 of the document's text, in hexadecimal.
        encoding: A Python codec name.
        indexed: When the index took in this state of the file, ISO 8601 UTC.
    """

    info: DocumentInfo
    absolute_path: str
    hash: str
    encoding: str
    indexed: str


class Recent(Capability):
    """Lists documents by the time of change of their files; both methods take collection ids."""

    def latest(
        self,
        collection_ids: Sequence[int],
        selection: Selection,
        *,
        since: str | None = None,
        limit: int,
    ) -> list[RecentDocument]:
        """
        The selected documents whose files changed last, the latest first.

        Args:
            since: ISO 8601 UTC as the database stores it; only changes from then on.
            limit: Return at most this many.
        """
        rows: list[Row] = []
        for collection_id in collection_ids:
            rows += self._sql.rows(
                (str, int),
                "SELECT d.modified_at, d.id FROM documents d"
                f" WHERE d.collection_id = ? AND d.modified_at >= ? AND {selection.sql}"
                " ORDER BY d.modified_at DESC, d.id LIMIT ?",
                [collection_id, since or "", *selection.values, limit],
            )
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse=True)
        return self._with_facts([document_id for _, document_id in rows[:limit]])

    def _with_facts(self, document_ids: list[int]) -> list[RecentDocument]:
        rows = self._sql.rows(
            (int, str, str, str, str),
            "SELECT d.id, c.path || '/' || d.path, d.hash, d.encoding, d.indexed_at"
            " FROM documents d JOIN collections c ON c.id = d.collection_id"
            f" WHERE d.id {self._sql.among}",
            [self._sql.array(document_ids)],
        )
        facts = {document_id: values for document_id, *values in rows}
        documents = Documents(self._sql).by_ids(document_ids)
        return [RecentDocument(document, *facts[document.id]) for document in documents]

    def count_since(
        self, collection_ids: Sequence[int], selection: Selection, since: str | None = None
    ) -> int:
        """How many documents `latest` lists without a limit."""
        return sum(
            self._sql.number(
                "SELECT count(*) FROM documents d"
                f" WHERE d.collection_id = ? AND d.modified_at >= ? AND {selection.sql}",
                [collection_id, since or "", *selection.values],
            )
            for collection_id in collection_ids
        )
