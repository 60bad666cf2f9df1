"""Documents with all that hangs on them: chunks, tags, aliases, links and their full-text row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qmd.model import DocumentInfo, ParsedDocument, SkippedFile
from qmd.sqlite import Connection
from qmd.store import clock, vectors


class FileState(NamedTuple):
    """A file as the last scan saw it: equal numbers mean that it need not be read again."""

    bytes: int
    mtime_ns: int
    inode: int
    device: int


class Known(NamedTuple):
    """A document as the indexer compares it with the disk."""

    id: int
    state: FileState
    hash: str
    parser_version: int


class Place(NamedTuple):
    """A document and where it was: ids are used again, so that both must fit."""

    id: int
    path: str


@dataclass(frozen=True, slots=True)
class FullText:
    """The full-text row of a document, segmented."""

    title: str
    headings: str
    body: str
    path: str
    extra: str


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What the indexer hands over for one file; ``chunk_hashes`` parallel to ``parsed.chunks``."""

    path: str
    state: FileState
    hash: str
    parser_version: int
    parsed: ParsedDocument
    fulltext: FullText
    chunk_hashes: Sequence[bytes]


def known(connection: Connection, collection_id: int) -> dict[str, Known]:
    """Path → document, for all documents of a collection."""
    rows = connection.execute(
        "SELECT path, id, bytes, mtime_ns, inode, device, hash, parser_version"
        " FROM documents WHERE collection_id = ?",
        [collection_id],
    )
    return {
        path: Known(number, FileState(size, mtime, inode, device), digest, version)
        for path, number, size, mtime, inode, device, digest, version in rows
    }


def name_key(path: str) -> str:
    """A path's file name in lower case without its suffix: what a wikilink names."""
    name = path.rpartition("/")[2].lower()
    return name.rpartition(".")[0] or name


# --- writing -------------------------------------------------------------------------

_COLUMNS = (
    "collection_id, path, name_key, title, hash, date, modified_at, bytes, mtime_ns, inode,"
    " device, encoding, parser_version, body_start, properties, warnings, indexed_at, text"
)
_INSERT = f"INSERT INTO documents ({_COLUMNS}) VALUES ({', '.join('?' * 18)})"
_UPDATE = (
    "UPDATE documents SET "
    + ", ".join(f"{column.strip()} = ?" for column in _COLUMNS.split(","))
    + " WHERE id = ?"
)


def put(
    connection: Connection, collection_id: int, document: NewDocument, replace: Place | None = None
) -> int:
    """
    Store a document, in place of the one at ``replace`` if that is still there.

    Chunks whose text did not change keep their ids, and with them their vectors. Another
    process may have stored the same file meanwhile: then its row is replaced.

    Returns:
        The document's id.
    """
    parsed = document.parsed
    row: list[object] = [
        collection_id,
        document.path,
        name_key(document.path),
        parsed.title,
        document.hash,
        parsed.date,
        clock.from_ns(document.state.mtime_ns),
        *document.state,
        parsed.encoding,
        document.parser_version,
        parsed.body_start,
        json.dumps(parsed.properties, ensure_ascii=False) if parsed.properties else "{}",
        json.dumps(parsed.warnings, ensure_ascii=False) if parsed.warnings else "[]",
        clock.now(),
        parsed.text,
    ]
    row_id = _row_to_replace(connection, collection_id, document.path, replace)
    if row_id is None:
        number = connection.execute(_INSERT, row).lastrowid
        assert number is not None  # an INSERT has one
    else:
        number = row_id
        connection.execute(_UPDATE, [*row, number])
        for table in ("tags", "aliases", "links"):
            connection.execute(f"DELETE FROM {table} WHERE document_id = ?", [number])
    if parsed.tags:
        connection.executemany(
            "INSERT OR IGNORE INTO tags VALUES (?, ?)", [(number, tag) for tag in parsed.tags]
        )
    if parsed.aliases:
        connection.executemany(
            "INSERT OR IGNORE INTO aliases VALUES (?, ?)", [(number, a) for a in parsed.aliases]
        )
    if parsed.links:
        connection.executemany(
            "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    number,
                    seq,
                    link.kind,
                    link.target,
                    name_key(link.target) if "://" not in link.target else None,
                    link.text if link.kind in {"wikilink", "embed"} else None,
                    link.heading,
                    link.block,
                    link.line,
                )
                for seq, link in enumerate(parsed.links)
            ],
        )
    _put_chunks(connection, number, document, fresh=row_id is None)
    _put_fulltext(connection, number, document.fulltext, fresh=row_id is None)
    return number


def _row_to_replace(
    connection: Connection, collection_id: int, path: str, wanted: Place | None
) -> int | None:
    row = connection.execute(
        "SELECT id FROM documents WHERE collection_id = ? AND path = ?", [collection_id, path]
    ).fetchone()
    if row is not None:
        return int(row[0])
    if wanted is not None:
        row = connection.execute(
            "SELECT id FROM documents WHERE id = ? AND collection_id = ? AND path = ?",
            [wanted.id, collection_id, wanted.path],
        ).fetchone()
    return None if row is None else int(row[0])


def _put_fulltext(connection: Connection, number: int, row: FullText, *, fresh: bool) -> None:
    connection.execute(
        f"INSERT {'' if fresh else 'OR REPLACE '}INTO documents_fts"
        " (rowid, title, headings, body, path, extra) VALUES (?, ?, ?, ?, ?, ?)",
        [number, row.title, row.headings, row.body, row.path, row.extra],
    )


def _put_chunks(connection: Connection, number: int, document: NewDocument, *, fresh: bool) -> None:
    old: dict[bytes, list[int]] = {}
    if not fresh:
        for chunk_id, digest in connection.execute(
            "SELECT id, hash FROM chunks WHERE document_id = ? ORDER BY seq DESC", [number]
        ):
            old.setdefault(digest, []).append(chunk_id)
    inserts: list[tuple[object, ...]] = []
    updates: list[tuple[object, ...]] = []
    for chunk, digest in zip(document.parsed.chunks, document.chunk_hashes, strict=True):
        row = (
            number,
            chunk.seq,
            chunk.start_char,
            chunk.end_char,
            chunk.start_byte,
            chunk.end_byte,
            chunk.start_line,
            chunk.end_line,
            " > ".join(chunk.heading_path),
            digest,
        )
        same = old.get(digest)
        if same:
            updates.append((*row, same.pop()))
        else:
            inserts.append(row)
    gone = [chunk_id for ids in old.values() for chunk_id in ids]
    if gone:
        delete_chunks(connection, gone)
    if updates:
        connection.executemany(
            "UPDATE chunks SET document_id = ?, seq = ?, start_char = ?, end_char = ?,"
            " start_byte = ?, end_byte = ?, start_line = ?, end_line = ?, heading_path = ?,"
            " hash = ? WHERE id = ?",
            updates,
        )
    if inserts:
        connection.executemany(
            "INSERT INTO chunks (document_id, seq, start_char, end_char, start_byte, end_byte,"
            " start_line, end_line, heading_path, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            inserts,
        )


def delete_chunks(connection: Connection, ids: Sequence[int]) -> None:
    vectors.delete(connection, ids)
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(number,) for number in ids])


def set_states(connection: Connection, states: Iterable[tuple[int, FileState]]) -> None:
    """The files were touched and their texts stayed the same."""
    connection.executemany(
        "UPDATE documents SET modified_at = ?, bytes = ?, mtime_ns = ?, inode = ?, device = ?"
        " WHERE id = ?",
        [(clock.from_ns(state.mtime_ns), *state, number) for number, state in states],
    )


def delete_at(
    connection: Connection, collection_id: int, places: Iterable[tuple[str, Known]]
) -> None:
    """
    Documents by their paths, with their chunks, vectors, tags, links and full text.

    One that another process has moved or stored anew since it was `known` stays.
    """
    for path, known in places:
        row = connection.execute(
            "SELECT bytes, mtime_ns, inode, device FROM documents"
            " WHERE id = ? AND collection_id = ? AND path = ?",
            [known.id, collection_id, path],
        ).fetchone()
        if row is not None and FileState(*row) == known.state:
            vectors.delete_where(connection, "document_id = ?", [known.id])
            connection.execute("DELETE FROM documents WHERE id = ?", [known.id])


# --- skipped files -------------------------------------------------------------------


def known_skips(
    connection: Connection, collection_id: int
) -> dict[str, tuple[SkippedFile, FileState | None]]:
    """Path → skip, and the state of the file when it was read, if it was."""
    rows = connection.execute(
        "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns, s.inode, s.device"
        " FROM skipped_files s JOIN collections c ON c.id = s.collection_id"
        " WHERE s.collection_id = ?",
        [collection_id],
    )
    return {
        path: (
            SkippedFile(name, path, reason, detail),
            None if size is None else FileState(size, mtime, inode, device),
        )
        for name, path, reason, detail, size, mtime, inode, device in rows
    }


def set_skips(
    connection: Connection,
    collection_id: int,
    skips: Iterable[tuple[SkippedFile, FileState | None]],
) -> None:
    """Replace what is noted of a collection's skipped files."""
    connection.execute("DELETE FROM skipped_files WHERE collection_id = ?", [collection_id])
    connection.executemany(
        "INSERT OR REPLACE INTO skipped_files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (collection_id, s.path, s.reason, s.detail, *(state or (None, None, None, None)))
            for s, state in skips
        ],
    )


def skipped(connection: Connection) -> list[SkippedFile]:
    rows = connection.execute(
        "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
        " JOIN collections c ON c.id = s.collection_id ORDER BY c.name, s.path"
    )
    return [SkippedFile(*row) for row in rows]


# --- reading -------------------------------------------------------------------------

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
    for number, collection, path, title, digest, size, modified in rows:
        yield DocumentInfo(
            number, collection, path, title, docid(connection, digest), size, modified
        )


def info(connection: Connection, number: int) -> DocumentInfo:
    return next(_infos(connection, "WHERE d.id = ?", [number]))


def below(connection: Connection, collection: str | None, prefix: str = "") -> list[DocumentInfo]:
    """Documents of a collection (None: of all) below a path of whole components, in order."""
    where, values = "WHERE 1", list[object]()
    if collection is not None:
        where += " AND c.name = ?"
        values.append(collection)
    if prefix:
        where += f" AND {path_below('d.path')}"
        values += [prefix, prefix + "/", prefix + "0"]
    return list(_infos(connection, where + " ORDER BY c.name, d.path", values))


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
    return str(
        connection.execute("SELECT text FROM documents WHERE id = ?", [number]).fetchone()[0]
    )


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


def title_and_text(connection: Connection, number: int) -> str:
    """What a quoted literal is looked for in."""
    row = connection.execute(
        "SELECT title || char(10) || text FROM documents WHERE id = ?", [number]
    ).fetchone()
    return str(row[0])


class Page(NamedTuple):
    """What a hit shows of its document."""

    info: DocumentInfo
    text: str
    body_start: int


def page(connection: Connection, number: int) -> Page:
    text, body_start = connection.execute(
        "SELECT text, body_start FROM documents WHERE id = ?", [number]
    ).fetchone()
    return Page(info(connection, number), text, body_start)
