"""Reading documents: by path, suffix, docid or folder, and their text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.values import DocumentInfo

DOCID_DIGITS = 6

_INFO = """
    SELECT d.id, c.name, d.path, d.title, d.hash, d.bytes, d.modified_at
    FROM documents d JOIN collections c ON c.id = d.collection_id
"""


def docid(connection: Connection, digest: str) -> str:
    """``#`` and the first digits of a hash: six, or as many as no other content shares."""
    digits = DOCID_DIGITS
    neighbours = connection.execute(
        "SELECT (SELECT max(hash) FROM documents WHERE hash < :h),"
        " (SELECT min(hash) FROM documents WHERE hash > :h)",
        {"h": digest},
    ).fetchone()
    for neighbour in neighbours:
        if neighbour is not None:
            shared = 0
            while shared < len(digest) and neighbour[shared] == digest[shared]:
                shared += 1
            digits = max(digits, shared + 1)
    return "#" + digest[:digits]


def _infos(connection: Connection, where: str, values: Sequence[object]) -> Iterator[DocumentInfo]:
    rows = connection.execute(_INFO + where, values).fetchall()
    for row in rows:
        require_types(row, int, str, str, str, str, int, str)
        number, collection, path, title, digest, size, modified = row
        yield DocumentInfo(
            number, collection, path, title, docid(connection, digest), size, modified
        )


def info(connection: Connection, number: int) -> DocumentInfo:
    return next(_infos(connection, "WHERE d.id = ?", [number]))


def below(
    connection: Connection,
    collection: str | None,
    prefix: str = "",
    *,
    limit: int | None = None,
    offset: int = 0,
) -> list[DocumentInfo]:
    """Documents of a collection (None: of all) below a path of whole components, in order."""
    where, values = _below(collection, prefix)
    where += " ORDER BY c.name, d.path LIMIT ? OFFSET ?"
    return list(_infos(connection, where, [*values, -1 if limit is None else limit, offset]))


def count_below(connection: Connection, collection: str | None, prefix: str = "") -> int:
    where, values = _below(collection, prefix)
    sql = "SELECT count(*) FROM documents d JOIN collections c ON c.id = d.collection_id "
    return int(connection.execute(sql + where, values).fetchone()[0])


def _below(collection: str | None, prefix: str) -> tuple[str, list[object]]:
    where, values = "WHERE 1", list[object]()
    if collection is not None:
        where += " AND c.name = ?"
        values.append(collection)
    if prefix:
        where += f" AND {path_below('d.path')}"
        values += [prefix, prefix + "/", prefix + "0"]
    return where, values


def path_below(column: str) -> str:
    """SQL for "this path or below it"; bind path, path + "/", path + "0" ("0" follows "/")."""
    return f"({column} = ? OR ({column} > ? AND {column} < ?))"


def by_path(connection: Connection, collection: str, path: str) -> DocumentInfo | None:
    return next(_infos(connection, "WHERE c.name = ? AND d.path = ?", [collection, path]), None)


def by_suffix(connection: Connection, suffix: str) -> list[DocumentInfo]:
    """
    Documents whose ``collection/path`` ends with ``suffix`` at a component's start.

    An empty suffix matches nothing. Letter case counts; no wildcard does.
    """
    if not suffix:
        return []
    key = name_key(suffix)
    found = _infos(connection, "WHERE d.name_key = ? ORDER BY c.name, d.path", [key])
    return [document for document in found if f"/{document.file}".endswith(f"/{suffix}")]


def by_docid(connection: Connection, digits: str) -> list[DocumentInfo]:
    """Documents whose content hash starts with these hex digits, in path order."""
    return list(
        _infos(
            connection,
            "WHERE d.hash >= ? AND d.hash < ? ORDER BY c.name, d.path",
            [digits, digits + "g"],
        )
    )


def content_hash(connection: Connection, number: int) -> str:
    return str(
        connection.execute("SELECT hash FROM documents WHERE id = ?", [number]).fetchone()[0]
    )


def text(connection: Connection, number: int) -> str:
    row = connection.execute("SELECT text FROM documents WHERE id = ?", [number]).fetchone()
    require_types(row, str)
    return str(row[0])


def text_bytes(connection: Connection, number: int) -> int:
    """The size of a document's text in UTF-8, without reading it into Python."""
    row = connection.execute(
        "SELECT length(CAST(text AS BLOB)) FROM documents WHERE id = ?", [number]
    ).fetchone()
    return int(row[0])


def files(connection: Connection) -> list[str]:
    """Every ``collection/path``, in order."""
    rows = connection.execute(
        "SELECT c.name || '/' || d.path FROM documents d"
        " JOIN collections c ON c.id = d.collection_id ORDER BY c.name, d.path"
    )
    return [row[0] for row in rows]


def warnings(connection: Connection, number: int) -> list[str]:
    row = connection.execute("SELECT warnings FROM documents WHERE id = ?", [number]).fetchone()
    found: list[str] = json.loads(row[0])
    return found


class Page(NamedTuple):
    """What a hit shows of its document."""

    info: DocumentInfo
    text: str
    body_start: int


def page(connection: Connection, number: int) -> Page:
    row = connection.execute(
        "SELECT text, body_start FROM documents WHERE id = ?", [number]
    ).fetchone()
    require_types(row, str, int)
    text, body_start = row
    return Page(info(connection, number), text, body_start)


def name_key(path: str) -> str:
    """A path's file name in lower case without its suffix: what a wikilink names."""
    name = path.rpartition("/")[2].lower()
    return name.rpartition(".")[0] or name


def identities(connection: Connection) -> list[tuple[int, str, str, str]]:
    """Id, collection, path and content hash of every document."""
    rows = connection.execute(
        "SELECT d.id, c.name, d.path, d.hash FROM documents d"
        " JOIN collections c ON c.id = d.collection_id"
    )
    return [(number, name, path, digest) for number, name, path, digest in rows]
