"""Reads the links of documents, and the files that links may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from qmd.store.links import NamedFile, StoredLink
from qmd.store.postgres.library import Connection, stream
from qmd.store.sql import Sql

#: The columns of a `StoredLink`.
SELECT_LINKS = (
    "SELECT l.document_id, c.name, d.path, l.seq, l.kind, l.target, l.target_key, l.text,"
    " l.heading, l.block, l.line"
)
_FROM = (
    "FROM links l JOIN documents d ON d.id = l.document_id"
    " JOIN collections c ON c.id = d.collection_id"
)


class PostgresLinks:
    """`qmd.store.links.Links` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def of_documents(self, document_ids: Sequence[int]) -> list[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} {_FROM} WHERE l.document_id = ANY(%s) ORDER BY l.document_id, l.seq",
            [list(document_ids)],
        )
        return [StoredLink(*row) for row in rows]

    def to_keys(self, collection: str, keys: Iterable[str]) -> list[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} {_FROM} WHERE l.target_key = ANY(%s) AND c.name = %s"
            " ORDER BY d.path, l.seq",
            [list(keys), collection],
        )
        return [StoredLink(*row) for row in rows]

    def in_collection(self, collection: str) -> Iterator[StoredLink]:
        rows = stream(
            self._connection,
            f"{SELECT_LINKS} {_FROM} WHERE c.name = %s AND l.target_key IS NOT NULL"
            " ORDER BY l.document_id, l.seq",
            [collection],
        )
        for row in rows:
            yield StoredLink(*row)

    def files_with_keys(self, collection: str, keys: Iterable[str]) -> list[NamedFile]:
        where = (
            "JOIN collections c ON c.id = f.collection_id"
            " WHERE f.name_key = ANY(%s) AND c.name = %s"
        )
        values = [list(keys), collection]
        rows = self._connection.execute(
            f"SELECT f.path, f.id FROM documents f {where}"
            f" UNION ALL SELECT f.path, NULL FROM attachments f {where}",
            [*values, *values],
        )
        return [NamedFile(path, document_id) for path, document_id in rows]

    def has_folder(self, collection: str, path: str) -> bool:
        # "0" is the character behind "/".
        row = self._connection.execute(
            " UNION ALL ".join(
                f"(SELECT 1 FROM {table} f JOIN collections c ON c.id = f.collection_id"
                " WHERE c.name = %s AND f.path > %s AND f.path < %s LIMIT 1)"
                for table in ("documents", "attachments")
            ),
            [collection, f"{path}/", f"{path}0"] * 2,
        ).fetchone()
        return row is not None

    def attachments(self, collection: str, *, limit: int | None = None) -> list[str]:
        rows = self._connection.execute(
            "SELECT a.path FROM attachments a JOIN collections c ON c.id = a.collection_id"
            " WHERE c.name = %s ORDER BY a.path LIMIT %s",
            [collection, limit],
        )
        return [path for (path,) in rows]
