"""Answers questions about all links of a collection at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from qmd.store.graph import KeyedDocument
from qmd.store.links import StoredLink
from qmd.store.sql import Sql
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.links import SELECT_LINKS, stored_link
from qmd.store.sqlite.rows import require_types

#: The ids of the documents of a collection, read once from the index of paths.
_IDS = "(SELECT i.id FROM documents i WHERE i.collection_id = :collection)"
#: A link without a folder, a suffix and a percent sign.
_BARE = "(l.target NOT GLOB '*[./%\\]*' AND l.target_key <> '')"
#: It names a document of the collection by its name alone.
_NAMED = f"EXISTS (SELECT 1 FROM documents t WHERE t.name_key = l.target_key AND +t.id IN {_IDS})"
#: The same, and only one document has the name, and it has just this heading.
_HEADING = (
    "(l.block IS NULL AND instr(l.heading, '#') = 0 AND l.kind IN ('wikilink', 'embed')"
    " AND 1 = (SELECT count(*) FROM documents t WHERE t.name_key = l.target_key)"
    " AND EXISTS (SELECT 1 FROM documents t JOIN z_searchable s ON s.document_id = t.id"
    f" WHERE t.name_key = l.target_key AND +t.id IN {_IDS}"
    " AND instr(char(10) || s.headings || char(10), char(10) || l.heading || char(10))))"
)
#: A wikilink with the path of a document from the root.
_WHOLE_PATH = (
    "(l.kind IN ('wikilink', 'embed') AND l.heading IS NULL AND l.block IS NULL"
    " AND EXISTS (SELECT 1 FROM documents t"
    " WHERE t.collection_id = :collection AND t.path = l.target || '.md'))"
)


class SqliteGraph:
    """`qmd.store.graph.Graph` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

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
            " WHERE d.collection_id = :collection AND l.target_key IS NOT NULL"
            f" AND NOT ({_BARE} AND l.heading IS NULL AND l.block IS NULL AND {_NAMED})"
            f" AND NOT ({_BARE} AND l.heading IS NOT NULL AND {_HEADING})"
            f" AND NOT (instr(l.target, '/') > 0 AND {_WHOLE_PATH}) ORDER BY d.path, l.seq",
            {"collection": collection_id},
        )
        yield from map(stored_link, rows)

    def without_plain_links(self, collection: str) -> list[KeyedDocument]:
        rows = self._connection.execute(
            "SELECT d.id, d.path, d.name_key FROM documents d"
            " WHERE d.collection_id = :collection AND NOT ("
            "NOT EXISTS (SELECT 1 FROM documents o WHERE o.name_key = d.name_key AND o.id <> d.id)"
            " AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.name_key = d.name_key)"
            " AND EXISTS (SELECT 1 FROM links l WHERE l.target_key = d.name_key"
            f" AND l.document_id <> d.id AND {_BARE} AND +l.document_id IN {_IDS})"
            ") ORDER BY d.path",
            {"collection": self._id(collection)},
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
            " UNION ALL SELECT n.name_key, d.path FROM z_names n"
            " JOIN documents d ON d.id = n.document_id WHERE d.collection_id = ?",
            [collection_id] * 3,
        ).fetchall()
        for row in rows:
            require_types(row, str, str)
        return list(rows)
