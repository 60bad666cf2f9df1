"""Reads the links of documents, and the files that links may name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from qmd.store.links import NamedFile, StoredLink
from qmd.store.sql import Sql
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types

#: The columns of a `StoredLink`.
SELECT_LINKS = (
    "SELECT l.document_id, c.name, d.path, l.seq, l.kind, l.target, l.target_key, l.text,"
    " l.heading, l.block, l.line"
)
_KEYS = "(SELECT value FROM json_each(?))"
#: The plus keeps SQLite from reading the whole collection instead of the few rows with a key.
_OF_COLLECTION = "+d.collection_id = (SELECT id FROM collections WHERE name = ?)"


def stored_link(row: Sequence[object]) -> StoredLink:
    text = str | None
    require_types(row, int, str, str, int, str, str, text, text, text, text, int)
    return StoredLink(*row)  # type: ignore[arg-type]  # just checked


class SqliteLinks:
    """`qmd.store.links.Links` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def of_documents(self, document_ids: Sequence[int]) -> list[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} FROM links l JOIN documents d ON d.id = l.document_id"
            " JOIN collections c ON c.id = d.collection_id"
            f" WHERE l.document_id IN {_KEYS} ORDER BY l.document_id, l.seq",
            [json.dumps(document_ids)],
        )
        return list(map(stored_link, rows))

    def to_keys(self, collection: str, keys: Iterable[str]) -> list[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} FROM links l JOIN documents d ON d.id = l.document_id"
            " JOIN collections c ON c.id = d.collection_id"
            f" WHERE l.target_key IN {_KEYS} AND {_OF_COLLECTION} ORDER BY d.path, l.seq",
            [json.dumps(list(keys)), collection],
        )
        return list(map(stored_link, rows))

    def in_collection(self, collection: str) -> Iterator[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} FROM links l JOIN documents d ON d.id = l.document_id"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE c.name = ? AND l.target_key IS NOT NULL ORDER BY l.document_id, l.seq",
            [collection],
        )
        yield from map(stored_link, rows)

    def files_with_keys(self, collection: str, keys: Iterable[str]) -> list[NamedFile]:
        array = json.dumps(list(keys))
        where = f"WHERE d.name_key IN {_KEYS} AND {_OF_COLLECTION}"
        rows = self._connection.execute(
            f"SELECT d.path, d.id FROM documents d {where}"
            f" UNION ALL SELECT d.path, NULL FROM attachments d {where}",
            [array, collection, array, collection],
        ).fetchall()
        for row in rows:
            require_types(row, str, int | None)
        return [NamedFile(path, document_id) for path, document_id in rows]

    def has_folder(self, collection: str, path: str) -> bool:
        # "0" is the character behind "/".
        below = "c.name = :collection AND f.path > :path || '/' AND f.path < :path || '0'"
        row = self._connection.execute(
            " UNION ALL ".join(
                f"SELECT 1 FROM collections c CROSS JOIN {table} f ON f.collection_id = c.id"
                f" WHERE {below}"
                for table in ("documents", "attachments")
            )
            + " LIMIT 1",
            {"collection": collection, "path": path},
        ).fetchone()
        return row is not None

    def attachments(self, collection: str, *, limit: int | None = None) -> list[str]:
        rows = self._connection.execute(
            "SELECT a.path FROM attachments a JOIN collections c ON c.id = a.collection_id"
            " WHERE c.name = ? ORDER BY a.path LIMIT ?",
            [collection, -1 if limit is None else limit],
        )
        return [path for (path,) in rows]
