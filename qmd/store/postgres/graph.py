"""Answers questions about all links of a collection at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from qmd.store.graph import KeyedDocument
from qmd.store.links import StoredLink
from qmd.store.postgres.library import Connection, stream
from qmd.store.postgres.links import SELECT_LINKS
from qmd.store.sql import Sql

#: A link without a folder, a suffix and a percent sign.
_BARE = r"(l.target !~ '[./%%\\]' AND l.target_key <> '')"
#: It names a document of the collection by its name alone.
_NAMED = (
    "EXISTS (SELECT 1 FROM documents t"
    " WHERE t.name_key = l.target_key AND t.collection_id = d.collection_id)"
)
#: The same, and only one document has the name, and a chunk of it lies below just this heading.
_HEADING = (
    "(l.block IS NULL AND strpos(l.heading, '#') = 0 AND l.kind IN ('wikilink', 'embed')"
    " AND 1 = (SELECT count(*) FROM documents t WHERE t.name_key = l.target_key)"
    " AND EXISTS (SELECT 1 FROM documents t JOIN chunks k ON k.document_id = t.id"
    " WHERE t.name_key = l.target_key AND t.collection_id = d.collection_id"
    " AND l.heading = ANY(string_to_array(k.heading_path, ' > '))))"
)
#: A wikilink with the path of a document from the root.
_WHOLE_PATH = (
    "(l.kind IN ('wikilink', 'embed') AND l.heading IS NULL AND l.block IS NULL"
    " AND EXISTS (SELECT 1 FROM documents t"
    " WHERE t.collection_id = d.collection_id AND t.path = l.target || '.md'))"
)


class PostgresGraph:
    """`qmd.store.graph.Graph` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def doubtful_links(self, collection: str) -> Iterator[StoredLink]:
        rows = stream(
            self._connection,
            f"{SELECT_LINKS} FROM collections c JOIN documents d ON d.collection_id = c.id"
            " JOIN links l ON l.document_id = d.id"
            " WHERE c.name = %s AND l.target_key IS NOT NULL"
            f" AND NOT ({_BARE} AND l.heading IS NULL AND l.block IS NULL AND {_NAMED})"
            f" AND NOT ({_BARE} AND l.heading IS NOT NULL AND {_HEADING})"
            f" AND NOT (strpos(l.target, '/') > 0 AND {_WHOLE_PATH}) ORDER BY d.path, l.seq",
            [collection],
        )
        for row in rows:
            yield StoredLink(*row)

    def without_plain_links(self, collection: str) -> list[KeyedDocument]:
        rows = self._connection.execute(
            "SELECT d.id, d.path, d.name_key FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE c.name = %s AND NOT ("
            "NOT EXISTS (SELECT 1 FROM documents o WHERE o.name_key = d.name_key AND o.id <> d.id)"
            " AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.name_key = d.name_key)"
            " AND EXISTS (SELECT 1 FROM links l JOIN documents o ON o.id = l.document_id"
            f" WHERE l.target_key = d.name_key AND o.id <> d.id AND {_BARE}"
            " AND o.collection_id = d.collection_id)) ORDER BY d.path",
            [collection],
        )
        return [KeyedDocument(*row) for row in rows]

    def one_link_to_each(self, collection: str, keys: Collection[str]) -> list[StoredLink]:
        rows = self._connection.execute(
            SELECT_LINKS.replace("SELECT", "SELECT DISTINCT ON (l.target_key)", 1)
            + " FROM links l JOIN documents d ON d.id = l.document_id"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE l.target_key = ANY(%s) AND c.name = %s ORDER BY l.target_key, d.id, l.seq",
            [sorted(keys), collection],
        )
        return [StoredLink(*row) for row in rows]

    def file_paths(self, collection: str) -> set[str]:
        rows = self._connection.execute(
            " UNION ALL ".join(
                f"SELECT f.path FROM {table} f JOIN collections c ON c.id = f.collection_id"
                " WHERE c.name = %s"
                for table in ("documents", "attachments")
            ),
            [collection] * 2,
        )
        return {path for (path,) in rows}

    def names(self, collection: str) -> list[tuple[str, str]]:
        of_collection = "JOIN collections c ON c.id = f.collection_id WHERE c.name = %s"
        return self._connection.execute(
            f"SELECT f.name_key, f.path FROM documents f {of_collection}"
            f" UNION ALL SELECT f.name_key, f.path FROM attachments f {of_collection}"
            " UNION ALL SELECT n.name_key, f.path FROM z_names n"
            f" JOIN documents f ON f.id = n.document_id {of_collection}",
            [collection] * 3,
        ).fetchall()
