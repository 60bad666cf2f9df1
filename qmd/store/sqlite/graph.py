"""Answers questions about all links of a collection at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from qmd.store.graph import KeyedDocument
from qmd.store.links import StoredLink
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.links import SELECT_LINKS, stored_link
from qmd.store.sqlite.rows import require_types

#: A link without a folder, a suffix, a percent sign, a heading and a block.
_PLAIN = (
    "(l.target NOT GLOB '*[./%\\]*' AND l.target_key <> ''"
    " AND l.heading IS NULL AND l.block IS NULL)"
)
#: The plus keeps SQLite from reading a whole collection instead of the few rows with a key.
_DOCUMENT = (
    "EXISTS (SELECT 1 FROM documents t WHERE t.name_key = l.target_key AND +t.collection_id = ?)"
)


class SqliteGraph:
    """`qmd.store.graph.Graph` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _id(self, collection: str) -> int:
        row = self._connection.execute(
            "SELECT id FROM collections WHERE name = ?", [collection]
        ).fetchone()
        return 0 if row is None else int(row[0])

    def doubtful_links(self, collection: str) -> Iterator[StoredLink]:
        collection_id = self._id(collection)
        rows = self._connection.execute(
            f"{SELECT_LINKS} FROM documents d CROSS JOIN collections c ON c.id = d.collection_id"
            " CROSS JOIN links l ON l.document_id = d.id"
            " WHERE d.collection_id = ? AND l.target_key IS NOT NULL"
            f" AND NOT ({_PLAIN} AND {_DOCUMENT}) ORDER BY d.path, l.seq",
            [collection_id, collection_id],
        )
        yield from map(stored_link, rows)

    def without_plain_links(self, collection: str) -> list[KeyedDocument]:
        collection_id = self._id(collection)
        rows = self._connection.execute(
            "SELECT d.id, d.path, d.name_key FROM documents d WHERE d.collection_id = ? AND NOT ("
            "(SELECT count(*) FROM (SELECT 1 FROM documents o WHERE o.name_key = d.name_key"
            " AND +o.collection_id = d.collection_id LIMIT 2)) = 1"
            " AND NOT EXISTS (SELECT 1 FROM attachments a"
            " WHERE a.name_key = d.name_key AND +a.collection_id = d.collection_id)"
            " AND EXISTS (SELECT 1 FROM links l JOIN documents s ON s.id = l.document_id"
            " WHERE l.target_key = d.name_key AND l.document_id <> d.id"
            f" AND s.collection_id = d.collection_id AND {_PLAIN})"
            ") ORDER BY d.path",
            [collection_id],
        ).fetchall()
        for row in rows:
            require_types(row, int, str, str)
        return [KeyedDocument(*row) for row in rows]

    def one_link_to_each(self, collection: str, keys: Collection[str]) -> list[StoredLink]:
        rows = self._connection.execute(
            f"{SELECT_LINKS} FROM json_each(?) j"
            " CROSS JOIN links l ON l.target_key = j.value"
            " CROSS JOIN documents d ON d.id = l.document_id AND d.collection_id = ?"
            " CROSS JOIN collections c ON c.id = d.collection_id"
            " GROUP BY j.value",
            [json.dumps(sorted(keys)), self._id(collection)],
        )
        return list(map(stored_link, rows))

    def file_paths(self, collection: str) -> set[str]:
        collection_id = self._id(collection)
        rows = self._connection.execute(
            "SELECT path FROM documents WHERE collection_id = ?"
            " UNION ALL SELECT path FROM attachments WHERE collection_id = ?",
            [collection_id, collection_id],
        )
        return {path for (path,) in rows}

    def names(self, collection: str) -> list[tuple[str, str]]:
        collection_id = self._id(collection)
        rows = self._connection.execute(
            "SELECT name_key, path FROM documents WHERE collection_id = ?"
            " UNION ALL SELECT name_key, path FROM attachments WHERE collection_id = ?"
            " UNION ALL SELECT n.name_key, d.path FROM names n"
            " JOIN documents d ON d.id = n.document_id WHERE d.collection_id = ?",
            [collection_id] * 3,
        ).fetchall()
        for row in rows:
            require_types(row, str, str)
        return list(rows)
