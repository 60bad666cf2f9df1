"""The store's side of the files: what the last scan saw, and documents written from new scans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from qmd.store.sqlite import clock, vector_state
from qmd.store.sqlite.documents import name_key
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.values import FileState, FullText, NewDocument, SkippedFile


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


def known(connection: Connection, collection_id: int) -> dict[str, Known]:
    """Path → document, for all documents of a collection."""
    return _known(connection, "collection_id = ?", [collection_id])


def known_at(connection: Connection, collection_id: int, places: Iterable[str]) -> dict[str, Known]:
    """As `known`, for the documents at these paths and below them; "" is the root."""
    found: dict[str, Known] = {}
    for place in places:
        if not place:
            return known(connection, collection_id)
        if not place.isprintable() and _has_surrogates(place):
            continue  # no document has such a path
        # "0" follows "/".
        condition = "collection_id = ? AND (path = ? OR path > ? AND path < ?)"
        found |= _known(connection, condition, [collection_id, place, f"{place}/", f"{place}0"])
    return found


def state_at(connection: Connection, collection_id: int, path: str) -> FileState | None:
    """The file a document was made from; None if there is no such document."""
    row = connection.execute(
        "SELECT bytes, mtime_ns, inode, device FROM documents WHERE collection_id = ? AND path = ?",
        [collection_id, path],
    ).fetchone()
    return None if row is None else FileState(*row)


def known_with(connection: Connection, collection_id: int, digest: str) -> dict[str, Known]:
    """As `known`, for the documents of one text."""
    return _known(connection, "collection_id = ? AND hash = ?", [collection_id, digest])


def _has_surrogates(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


def _known(connection: Connection, condition: str, values: Sequence[object]) -> dict[str, Known]:
    rows = connection.execute(
        "SELECT path, id, bytes, mtime_ns, inode, device, hash,"
        # One whose text was changed by hand has no full text: as if made by no parser of ours.
        " CASE WHEN id IN (SELECT document_id FROM searchable) THEN parser_version ELSE 0 END"
        f" FROM documents WHERE {condition}",
        values,
    )
    return {
        path: Known(number, FileState(size, mtime, inode, device), digest, version)
        for path, number, size, mtime, inode, device, digest, version in rows
    }


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
    _put_fulltext(connection, number, document.fulltext)
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


def _put_fulltext(connection: Connection, number: int, row: FullText) -> None:
    # Replacing the document has taken its old row out; triggers keep the index in step.
    connection.execute(
        "INSERT INTO searchable (document_id, title, headings, body, path, front, words)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [number, row.title, row.headings, row.body, row.path, row.front, row.words],
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
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(number,) for number in ids])
    vector_state.advance(connection)


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
    deleted = False
    for path, known in places:
        row = connection.execute(
            "SELECT bytes, mtime_ns, inode, device FROM documents"
            " WHERE id = ? AND collection_id = ? AND path = ?",
            [known.id, collection_id, path],
        ).fetchone()
        if row is not None and FileState(*row) == known.state:
            connection.execute("DELETE FROM documents WHERE id = ?", [known.id])
            deleted = True
    if deleted:
        vector_state.advance(connection)


# --- skipped files -------------------------------------------------------------------


def known_skips(
    connection: Connection, collection_id: int, version: int | None = None
) -> dict[str, tuple[SkippedFile, FileState | None]]:
    """Path → skip, and the state of the file when this version of the parser read it, if it did."""
    rows = connection.execute(
        "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns, s.inode, s.device,"
        " s.parser_version FROM skipped_files s JOIN collections c ON c.id = s.collection_id"
        " WHERE s.collection_id = ?",
        [collection_id],
    )
    return {
        path: (
            SkippedFile(name, path, reason, detail),
            FileState(size, mtime, inode, device) if read_by == version and read_by else None,
        )
        for name, path, reason, detail, size, mtime, inode, device, read_by in rows
    }


def set_skips(
    connection: Connection,
    collection_id: int,
    skips: Iterable[tuple[SkippedFile, FileState | None]],
    version: int,
) -> None:
    """Replace what is noted of a collection's skipped files."""
    connection.execute("DELETE FROM skipped_files WHERE collection_id = ?", [collection_id])
    connection.executemany(
        "INSERT OR REPLACE INTO skipped_files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (collection_id, s.path, s.reason, s.detail, *(state or [None] * 4), state and version)
            for s, state in skips
        ],
    )


def skipped(connection: Connection) -> list[SkippedFile]:
    rows = connection.execute(
        "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
        " JOIN collections c ON c.id = s.collection_id ORDER BY c.name, s.path"
    ).fetchall()
    for row in rows:
        require_types(row, str, str, str, str)
    return [SkippedFile(*row) for row in rows]
