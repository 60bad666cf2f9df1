"""Reads documents by path, suffix, docid or folder, and their text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from qmd.store.documents import DocumentFacts, DocumentName, FullDocument, NameKind, Order
from qmd.store.postgres.filters import require_sql
from qmd.store.postgres.library import Connection, stream
from qmd.store.postgres.rows import one, path_below
from qmd.store.selection import Selection
from qmd.store.sql import Sql
from qmd.system.surrogates import whole
from qmd.values import DocumentInfo
from qmd.values.names import file_stem, fold, name_key

DOCID_DIGITS = 6

#: For `_info`. The last two are the hashes of other contents before and after it, or NULL.
_INFO = """
    d.id, c.name, d.path, d.title, d.hash, d.bytes, d.modified_at,
    (SELECT max(hash) FROM documents WHERE hash < d.hash),
    (SELECT min(hash) FROM documents WHERE hash > d.hash)
"""
_ALIASES = "ARRAY(SELECT alias FROM aliases WHERE document_id = d.id ORDER BY alias_key)"
_FROM = "FROM documents d JOIN collections c ON c.id = d.collection_id"


def _below(
    collection: str | None, prefix: str, selection: Selection | None
) -> tuple[str, list[object]]:
    where, values = "WHERE true", list[object]()
    if collection is not None:
        where += " AND c.name = %s"
        values.append(collection)
    if prefix:
        where += f" AND {path_below('d.path')}"
        values += [prefix, prefix + "/", prefix + "0"]
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
    nulls = "NULLS LAST" if order.descending else "NULLS FIRST"
    if order.by == "title":
        return "", f"lower(d.title) {direction}, d.title {direction}, "
    if order.by == "date":
        return "", f"d.moment {direction} {nulls}, "
    values.append(order.key)
    return (
        " LEFT JOIN (SELECT DISTINCT ON (document_id) document_id, number,"
        " CASE WHEN number IS NULL THEN coalesce(date, text) END AS written"
        " FROM properties WHERE key = %s AND kind <> 'empty'"
        f" ORDER BY document_id, number IS NULL {direction}, number {direction},"
        f" coalesce(date, text) {direction}) p ON p.document_id = d.id"
    ), (
        "p.document_id IS NULL, "
        f"p.number IS NULL {direction}, p.number {direction}, p.written {direction}, "
    )


def _info(row: Sequence[Any]) -> DocumentInfo:
    """From a row of `_INFO`."""
    *stored, before, after = row
    document_id, collection, path, title, digest, size, modified = stored
    docid = _docid(digest, before, after)
    return DocumentInfo(document_id, collection, path, title, docid, size, modified)


def _names_and_text(title: str, path: str, aliases: Sequence[str], text: str) -> str:
    """A document's names and its text, on lines of their own."""
    return "\n".join([title, file_stem(path), *aliases, text])


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


class PostgresDocuments:
    """`qmd.store.documents.Documents` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def _infos(self, where: str, values: Sequence[object]) -> Iterator[DocumentInfo]:
        rows = self._connection.execute(f"SELECT {_INFO} {_FROM} {where}", values).fetchall()
        return map(_info, rows)

    def by_id(self, document_id: int) -> DocumentInfo:
        return next(self._infos("WHERE d.id = %s", [document_id]))

    def by_ids(self, document_ids: Sequence[int]) -> list[DocumentInfo]:
        condition = "WHERE d.id = ANY(%s)"
        documents = {each.id: each for each in self._infos(condition, [list(document_ids)])}
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
        where = f"{join} {where} ORDER BY {keys}c.name, d.path LIMIT %s OFFSET %s"
        return list(self._infos(where, [*values, *others, limit, offset]))

    def places(self, beginning: str = "") -> Iterator[tuple[int, str, str]]:
        yield from stream(
            self._connection,
            "SELECT d.id, c.name, d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE starts_with(d.path, %s) OR starts_with(c.name || '/' || d.path, %s)"
            " ORDER BY c.name, d.path",
            [beginning, beginning],
        )

    def name_keys(self) -> Iterator[tuple[str, int]]:
        for sql in (
            "SELECT name_key, id FROM documents ORDER BY name_key",
            "SELECT name_key, document_id FROM z_names ORDER BY name_key",
        ):
            yield from stream(self._connection, sql)

    def count(self) -> int:
        return int(one(self._connection, "SELECT count(*) FROM documents")[0])

    def count_below(
        self, collection: str | None, prefix: str = "", *, selection: Selection | None = None
    ) -> int:
        where, values = _below(collection, prefix, selection)
        sql = "SELECT count(*) FROM documents d JOIN collections c ON c.id = d.collection_id "
        return int(one(self._connection, sql + where, values)[0])

    def by_path(self, collection: str, path: str) -> DocumentInfo | None:
        return next(self._infos("WHERE c.name = %s AND d.path = %s", [collection, path]), None)

    def with_file_names(self, keys: Iterable[str]) -> list[DocumentName]:
        return self._names(
            "SELECT d.id, c.name, d.path, 'file name', d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE d.name_key = ANY(%s)",
            [list(keys)],
        )

    def with_file_name_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT c.name || '/' || d.path FROM documents d"
            " JOIN collections c ON c.id = d.collection_id"
            " WHERE d.name_key >= %s AND d.name_key < %s ORDER BY d.name_key, 1 LIMIT %s",
            [prefix, f"{prefix}\U0010ffff", limit],
        )
        return [file for (file,) in rows]

    def entries(self, collection: str, prefix: str, limit: int) -> list[str]:
        entries: list[str] = []
        start = prefix
        while len(entries) < limit:
            row = self._connection.execute(
                "SELECT d.path FROM documents d JOIN collections c ON c.id = d.collection_id"
                " WHERE c.name = %s AND d.path >= %s AND d.path < %s ORDER BY d.path LIMIT 1",
                [collection, start, f"{prefix}\U0010ffff"],
            ).fetchone()
            if row is None:
                break
            path = str(row[0])
            slash = path.find("/", len(prefix))
            entries.append(path if slash < 0 else path[: slash + 1])
            start = f"{path}\x01" if slash < 0 else f"{path[:slash]}0"  # "0" follows "/"
        return entries

    def with_other_names(self, keys: Iterable[str]) -> list[DocumentName]:
        folded = list(keys)
        tables = "FROM z_names n JOIN documents d ON d.id = n.document_id"
        tables += " JOIN collections c ON c.id = d.collection_id"
        having_key = "n.name_key = ANY(%s)"
        names = self._names(
            f"SELECT d.id, c.name, d.path, 'title', d.title {tables}"
            f" WHERE {having_key} AND n.kind = 'title'"
            f" UNION ALL SELECT d.id, c.name, d.path, 'alias', a.alias {tables}"
            " JOIN aliases a ON a.document_id = d.id"
            f" WHERE {having_key} AND n.kind = 'alias'",
            [folded, folded],
        )
        return [name for name in names if fold(name.name) in folded]

    def _names(self, sql: str, values: Sequence[object]) -> list[DocumentName]:
        rows = self._connection.execute(sql, values).fetchall()
        return [DocumentName(*row) for row in rows]

    def by_docid(self, digits: str) -> list[DocumentInfo]:
        return list(
            self._infos(
                "WHERE d.hash >= %s AND d.hash < %s ORDER BY c.name, d.path",
                [digits, digits + "g"],
            )
        )

    def content_hash(self, document_id: int) -> str:
        sql = "SELECT hash FROM documents WHERE id = %s"
        return str(one(self._connection, sql, [document_id])[0])

    def text(self, document_id: int) -> str:
        sql = "SELECT text FROM documents WHERE id = %s"
        return str(one(self._connection, sql, [document_id])[0])

    def text_bytes(self, document_id: int) -> int:
        sql = "SELECT octet_length(text) FROM documents WHERE id = %s"
        return int(one(self._connection, sql, [document_id])[0])

    def named(self, kind: NameKind, name: str, selection: Selection, limit: int) -> list[int]:
        where = require_sql(selection)
        name = whole(name)
        if kind == "file name":
            if "/" in name:
                return []  # name_key would take it for a path
            named, values = "SELECT id FROM documents WHERE name_key = %s", [name_key(name)]
        else:
            named = "SELECT document_id FROM z_names WHERE name_key = %s AND kind = %s"
            values = [fold(name), kind]
        condition = "" if where.is_all else f" AND {where.sql}"
        rows = self._connection.execute(
            f"SELECT d.id FROM documents d WHERE d.id IN ({named}){condition}"
            " ORDER BY d.id LIMIT %s",
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
        sql = "SELECT warnings FROM documents WHERE id = %s"
        warnings: list[str] = one(self._connection, sql, [document_id])[0]
        return warnings

    def full(self, document_ids: Sequence[int]) -> list[FullDocument]:
        rows = self._connection.execute(
            f"SELECT d.text, d.body_start, {_ALIASES}, {_INFO} {_FROM} WHERE d.id = ANY(%s)",
            [list(document_ids)],
        )
        documents = {}
        for text, body_start, aliases, *info_row in rows:
            document = FullDocument(_info(info_row), text, body_start, aliases)
            documents[document.info.id] = document
        return [documents[document_id] for document_id in document_ids]

    def facts(self, document_id: int) -> DocumentFacts:
        sql = "SELECT date, description, properties FROM documents WHERE id = %s"
        date, description, properties = one(self._connection, sql, [document_id])
        names = [
            [
                name
                for (name,) in self._connection.execute(
                    f"SELECT {column} FROM {table} WHERE document_id = %s ORDER BY {column}_key",
                    [document_id],
                )
            ]
            for table, column in (("tags", "tag"), ("aliases", "alias"))
        ]
        return DocumentFacts(date, description, properties, *names)

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
            sql = f"SELECT {field} FROM documents WHERE id = %s"
            return str(one(self._connection, sql, [document_id])[0])
        column = "''" if field == "title" else "d.text"
        sql = f"SELECT d.title, d.path, {_ALIASES}, {column} FROM documents d WHERE d.id = %s"
        return _names_and_text(*one(self._connection, sql, [document_id]))

    def names_and_texts(self, selection: Selection) -> Iterator[tuple[int, str]]:
        where = require_sql(selection)
        rows = stream(
            self._connection,
            f"SELECT d.id, d.title, d.path, {_ALIASES}, d.text FROM documents d"
            f" WHERE {where.sql} ORDER BY d.id",
            where.values,
            rows_at_once=100,
        )
        for document_id, *row in rows:
            yield document_id, _names_and_text(*row)

    def selected_ids(self, selection: Selection) -> list[int]:
        where = require_sql(selection)
        rows = self._connection.execute(
            f"SELECT d.id FROM documents d WHERE {where.sql}", where.values
        )
        return [document_id for (document_id,) in rows]

    def count_selected(self, selection: Selection) -> int:
        where = require_sql(selection)
        sql = f"SELECT count(*) FROM documents d WHERE {where.sql}"
        return int(one(self._connection, sql, where.values)[0])

    def ordered_ids(self, document_ids: Collection[int], order: Order) -> list[int]:
        values: list[object] = []
        join, keys = _order(order, values)
        rows = self._connection.execute(
            f"SELECT d.id {_FROM}{join} WHERE d.id = ANY(%s) ORDER BY {keys}c.name, d.path",
            [*values, list(document_ids)],
        )
        return [document_id for (document_id,) in rows]

    def latest_ids(self, selection: Selection) -> Iterator[int]:
        where = require_sql(selection)
        rows = stream(
            self._connection,
            "SELECT d.id FROM documents d JOIN collections c ON c.id = d.collection_id"
            f" WHERE {where.sql} ORDER BY d.moment DESC NULLS LAST, c.name, d.path",
            where.values,
        )
        for (document_id,) in rows:
            yield document_id
