"""Reads documents by path, suffix, docid or folder, and their text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from qmd.store.documents import DocumentFacts, DocumentName, FullDocument, NameKind, Order
from qmd.store.selection import Selection
from qmd.store.sql import Sql
from qmd.store.sqlite.filters import path_below, path_values, require_sql
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system.surrogates import whole
from qmd.values import DocumentInfo
from qmd.values.names import file_stem, fold, name_key

DOCID_DIGITS = 6

#: For `_info`. The last two are the hashes of other contents before and after it, or NULL.
_INFO = """
    d.id, c.name, d.path, d.title, d.hash, d.bytes, d.modified_at,
    (SELECT hash FROM documents WHERE hash < d.hash ORDER BY hash DESC LIMIT 1),
    (SELECT hash FROM documents WHERE hash > d.hash ORDER BY hash LIMIT 1)
"""
#: A JSON list. (Without aliases the list is empty.)
_ALIASES = "(SELECT json_group_array(alias) FROM aliases WHERE document_id = d.id)"
_FROM = "FROM documents d JOIN collections c ON c.id = d.collection_id"


def _below(
    collection: str | None, prefix: str, selection: Selection | None
) -> tuple[str, list[object]]:
    where, values = "WHERE 1", list[object]()
    if collection is not None:
        # Not by c.name: so SQLite sees that the index of paths has the order, and sorts nothing.
        where += " AND d.collection_id = (SELECT id FROM collections WHERE name = ?)"
        values.append(collection)
    if prefix:
        where += f" AND {path_below('d.path')}"
        values += path_values(prefix)
    if selection is not None:
        selected = require_sql(selection)
        where += f" AND ({selected.sql})"
        values += selected.values
    return where, values


def _order(order: Order | None, values: list[object]) -> tuple[str, str]:
    """A join and what to sort by; the values of the join are appended to ``values``."""
    if order is None:
        return "", ""
    direction = "DESC" if order.descending else "ASC"
    if order.by == "title":
        return "", f"d.title COLLATE NOCASE {direction}, d.title {direction}, "
    if order.by == "date":
        return "", f"coalesce(julianday(d.date), julianday(d.modified_at)) {direction}, "
    best = "max" if order.descending else "min"
    values.append(order.key)
    return (
        f" LEFT JOIN (SELECT document_id, {best}(coalesce(number, date, text)) AS best"
        " FROM properties WHERE key = ? AND kind <> 'empty' GROUP BY document_id) p"
        " ON p.document_id = d.id"
    ), f"p.best IS NULL, p.best {direction}, "


def _info(row: Sequence[Any]) -> DocumentInfo:
    """From a row of `_INFO`."""
    *stored, before, after = row
    require_types(stored, int, str, str, str, str, int, str)
    document_id, collection, path, title, digest, size, modified = stored
    docid = _docid(digest, before, after)
    return DocumentInfo(document_id, collection, path, title, docid, size, modified)


def _names_and_text(title: str, path: str, aliases: str, text: str) -> str:
    """A document's names and its text, on lines of their own."""
    return "\n".join([title, file_stem(path), *json.loads(aliases), text])


def _docid(digest: str, *neighbours: str | None) -> str:
    """``#`` and the first digits of a hash: six, or as many as no other content shares."""
    digits = DOCID_DIGITS
    for neighbour in neighbours:
        if neighbour is not None:
            shared = 0
            while shared < len(digest) and neighbour[shared] == digest[shared]:
                shared += 1
            digits = max(digits, shared + 1)
    return "#" + digest[:digits]


class SqliteDocuments:
    """`qmd.store.documents.Documents` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def _infos(self, where: str, values: Sequence[object]) -> Iterator[DocumentInfo]:
        rows = self._connection.execute(f"SELECT {_INFO} {_FROM} {where}", values).fetchall()
        return map(_info, rows)

    def by_id(self, document_id: int) -> DocumentInfo:
        return next(self._infos("WHERE d.id = ?", [document_id]))

    def by_ids(self, document_ids: Sequence[int]) -> list[DocumentInfo]:
        condition = "WHERE d.id IN (SELECT value FROM json_each(?))"
        documents = {each.id: each for each in self._infos(condition, [json.dumps(document_ids)])}
        return [documents[document_id] for document_id in document_ids]

    def below(
        self,
        collection: str | None,
        prefix: str = "",
        *,
        selection: Selection | None = None,
        order: Order | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[DocumentInfo]:
        values: list[object] = []
        join, keys = _order(order, values)
        where, others = _below(collection, prefix, selection)
        by_name = "c.name, " if collection is None else ""
        where = f"{join} {where} ORDER BY {keys}{by_name}d.path"
        if limit is None and not offset:
            return list(self._infos(where, [*values, *others]))
        # The other columns are read only of the documents that are returned.
        rows = self._connection.execute(
            f"SELECT d.id {_FROM} {where} LIMIT ? OFFSET ?",
            [*values, *others, -1 if limit is None else limit, offset],
        )
        return self.by_ids([document_id for (document_id,) in rows])

    def places(self, beginning: str = "") -> Iterator[tuple[int, str, str]]:
        names = sorted(self._connection.execute("SELECT name, id FROM collections"))
        for name, collection_id in names:
            start = f"{name}/"
            if start.startswith(beginning):
                prefixes = [""]
            elif beginning.startswith(start):
                prefixes = sorted({beginning, beginning.removeprefix(start)})
            else:
                prefixes = [beginning]
            paths: dict[str, int] = {}
            for prefix in prefixes:
                paths |= self._connection.execute(
                    "SELECT path, id FROM documents WHERE collection_id = ?"
                    " AND path >= ? AND path < ? ORDER BY path",
                    [collection_id, prefix, f"{prefix}\U0010ffff"],
                ).fetchall()
            for path in sorted(paths) if len(prefixes) > 1 else paths:
                yield paths[path], name, path

    def name_keys(self) -> Iterator[tuple[str, int]]:
        for sql in (
            "SELECT name_key, id FROM documents ORDER BY name_key",
            "SELECT name_key, document_id FROM z_names ORDER BY name_key",
        ):
            yield from self._connection.execute(sql)

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def count_below(
        self, collection: str | None, prefix: str = "", *, selection: Selection | None = None
    ) -> int:
        where, values = _below(collection, prefix, selection)
        sql = "SELECT count(*) FROM documents d JOIN collections c ON c.id = d.collection_id "
        return int(self._connection.execute(sql + where, values).fetchone()[0])

    def by_path(self, collection: str, path: str) -> DocumentInfo | None:
        return next(self._infos("WHERE c.name = ? AND d.path = ?", [collection, path]), None)

    def with_file_names(self, keys: Iterable[str]) -> list[DocumentName]:
        return self._names(
            "SELECT d.id, c.name, d.path, 'file name', d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE d.name_key IN (SELECT value FROM json_each(?))",
            [json.dumps(list(keys))],
        )

    def with_file_name_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT c.name || '/' || d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE d.name_key >= ? AND d.name_key < ? ORDER BY d.name_key, 1 LIMIT ?",
            [prefix, f"{prefix}\U0010ffff", limit],
        )
        return [file for (file,) in rows]

    def entries(self, collection: str, prefix: str, limit: int) -> list[str]:
        entries: list[str] = []
        start = prefix
        while len(entries) < limit:
            row = self._connection.execute(
                "SELECT d.path FROM documents d JOIN collections c ON c.id = d.collection_id"
                " WHERE c.name = ? AND d.path >= ? AND d.path < ? ORDER BY d.path LIMIT 1",
                [collection, start, f"{prefix}\U0010ffff"],
            ).fetchone()
            if row is None:
                break
            path = str(row[0])
            slash = path.find("/", len(prefix))
            entries.append(path if slash < 0 else path[: slash + 1])
            start = f"{path}\0" if slash < 0 else f"{path[:slash]}0"  # "0" follows "/"
        return entries

    def with_other_names(self, keys: Iterable[str]) -> list[DocumentName]:
        folded = list(keys)
        array = json.dumps(folded)
        tables = "FROM z_names n JOIN documents d ON d.id = n.document_id"
        tables += " JOIN collections c ON c.id = d.collection_id"
        having_key = "n.name_key IN (SELECT value FROM json_each(?))"
        names = self._names(
            f"SELECT d.id, c.name, d.path, 'title', d.title {tables}"
            f" WHERE {having_key} AND n.kind = 'title'"
            f" UNION ALL SELECT d.id, c.name, d.path, 'alias', a.alias {tables}"
            " JOIN aliases a ON a.document_id = d.id"
            f" WHERE {having_key} AND n.kind = 'alias'",
            [array, array],
        )
        return [name for name in names if fold(name.name) in folded]

    def _names(self, sql: str, values: Sequence[object]) -> list[DocumentName]:
        rows = self._connection.execute(sql, values).fetchall()
        for row in rows:
            require_types(row, int, str, str, str, str)
        return [DocumentName(*row) for row in rows]

    def by_docid(self, digits: str) -> list[DocumentInfo]:
        return list(
            self._infos(
                "WHERE d.hash >= ? AND d.hash < ? ORDER BY c.name, d.path",
                [digits, digits + "g"],
            )
        )

    def content_hash(self, document_id: int) -> str:
        return str(
            self._connection.execute(
                "SELECT hash FROM documents WHERE id = ?", [document_id]
            ).fetchone()[0]
        )

    def text(self, document_id: int) -> str:
        row = self._connection.execute(
            "SELECT text FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        require_types(row, str)
        return str(row[0])

    def text_bytes(self, document_id: int) -> int:
        row = self._connection.execute(
            "SELECT length(CAST(text AS BLOB)) FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        return int(row[0])

    def named(self, kind: NameKind, name: str, selection: Selection, limit: int) -> list[int]:
        where = require_sql(selection)
        name = whole(name)
        if kind == "file name":
            if "/" in name:
                return []  # name_key would take it for a path
            named, values = "SELECT id FROM documents WHERE name_key = ?", [name_key(name)]
        else:
            named = "SELECT document_id AS id FROM z_names WHERE name_key = ? AND kind = ?"
            values = [fold(name), kind]
        # CROSS JOIN has SQLite begin with the few that have the name, not with a whole collection.
        rows = self._connection.execute(
            f"SELECT d.id FROM (SELECT DISTINCT id FROM ({named})) n"
            f" CROSS JOIN documents d ON d.id = n.id WHERE {where.sql} ORDER BY d.id LIMIT ?",
            [*values, *where.values, limit],
        )
        return [document_id for (document_id,) in rows]

    def file_names(self) -> list[str]:
        rows = self._connection.execute(
            "SELECT c.name || '/' || d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id ORDER BY c.name, d.path"
        )
        return [row[0] for row in rows]

    def other_names(self) -> list[tuple[str, str]]:
        file = "SELECT c.name || '/' || d.path"
        tables = "documents d JOIN collections c ON c.id = d.collection_id"
        return self._connection.execute(
            f"{file}, d.title FROM {tables} UNION ALL {file}, a.alias FROM {tables}"
            " JOIN aliases a ON a.document_id = d.id"
        ).fetchall()

    def warnings(self, document_id: int) -> list[str]:
        row = self._connection.execute(
            "SELECT warnings FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        warnings: list[str] = json.loads(row[0])
        return warnings

    def full(self, document_ids: Sequence[int]) -> list[FullDocument]:
        rows = self._connection.execute(
            f"SELECT d.text, d.body_start, {_ALIASES}, {_INFO} {_FROM}"
            " WHERE d.id IN (SELECT value FROM json_each(?))",
            [json.dumps(document_ids)],
        )
        documents = {}
        for text, body_start, aliases, *info_row in rows:
            require_types((text, body_start), str, int)
            document = FullDocument(_info(info_row), text, body_start, json.loads(aliases))
            documents[document.info.id] = document
        return [documents[document_id] for document_id in document_ids]

    def facts(self, document_id: int) -> DocumentFacts:
        date, description, properties = self._connection.execute(
            "SELECT date, description, properties FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        require_types((properties,), str)
        names = [
            [
                name
                for (name,) in self._connection.execute(
                    f"SELECT {column} FROM {table} WHERE document_id = ? ORDER BY {column}",
                    [document_id],
                )
            ]
            for table, column in (("tags", "tag"), ("aliases", "alias"))
        ]
        return DocumentFacts(date, description, json.loads(properties), *names)

    def identities(self) -> list[tuple[int, str, str, str]]:
        rows = self._connection.execute(
            "SELECT d.id, c.name, d.path, d.hash FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
        )
        return [(document_id, name, path, digest) for document_id, name, path, digest in rows]

    def searched_text(
        self, document_id: int, field: Literal["title", "description", "path"] | None
    ) -> str:
        if field in ("description", "path"):
            row = self._connection.execute(
                f"SELECT {field} FROM documents WHERE id = ?", [document_id]
            ).fetchone()
            return str(row[0])
        column = "''" if field == "title" else "d.text"
        row = self._connection.execute(
            f"SELECT d.title, d.path, {_ALIASES}, {column} FROM documents d WHERE d.id = ?",
            [document_id],
        ).fetchone()
        return _names_and_text(*row)

    def names_and_texts(self, selection: Selection) -> Iterator[tuple[int, str]]:
        where = require_sql(selection)
        rows = self._connection.execute(
            f"SELECT d.id, d.title, d.path, {_ALIASES}, d.text FROM documents d"
            f" WHERE {where.sql} ORDER BY d.id",
            where.values,
        )
        for document_id, *row in rows:
            yield document_id, _names_and_text(*row)

    def selected_ids(self, selection: Selection) -> list[int]:
        where = require_sql(selection)
        rows = self._connection.execute(where.ids, where.values)
        return [document_id for (document_id,) in rows]

    def count_selected(self, selection: Selection) -> int:
        where = require_sql(selection)
        row = self._connection.execute(
            f"SELECT count(DISTINCT id) FROM (SELECT 0 AS id WHERE 0 UNION ALL {where.ids})",
            where.values,
        ).fetchone()
        return int(row[0])

    def ordered_ids(self, document_ids: Collection[int], order: Order) -> list[int]:
        values: list[object] = []
        join, keys = _order(order, values)
        rows = self._connection.execute(
            f"SELECT d.id {_FROM}{join} WHERE d.id IN (SELECT value FROM json_each(?))"
            f" ORDER BY {keys}c.name, d.path",
            [*values, json.dumps(list(document_ids))],
        )
        return [document_id for (document_id,) in rows]

    def latest_ids(self, selection: Selection) -> Iterator[int]:
        where = require_sql(selection)
        rows = self._connection.execute(
            "SELECT d.id FROM documents d JOIN collections c ON c.id = d.collection_id"
            f" WHERE {where.sql}"
            " ORDER BY coalesce(julianday(d.date), julianday(d.modified_at)) DESC, c.name, d.path",
            where.values,
        )
        for (document_id,) in rows:
            yield document_id
