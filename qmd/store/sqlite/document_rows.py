"""Writes the rows of a document: itself, tags, names, links, properties, chunks, full text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from qmd.store.embeddings import StoredChunk, chunk_rows
from qmd.store.files import DocumentPlace
from qmd.store.sql import Sql, properties, vector_state
from qmd.system import clock
from qmd.values import FullTextEntry, Link, NewDocument, ParsedDocument
from qmd.values.names import fold, link_key, name_key

_COLUMNS = (
    "collection_id, path, name_key, title, description, hash, date, modified_at, bytes, mtime_ns,"
    " inode, device, encoding, parser_version, body_start, properties, warnings, indexed_at, text,"
    " tags"
)
_INSERT = f"INSERT INTO documents ({_COLUMNS}) VALUES ({', '.join('?' * 20)})"
_entry = attrgetter("title", "headings", "body", "path", "front", "words", "description")
_UPDATE = (
    "UPDATE documents SET "
    + ", ".join(f"{column.strip()} = ?" for column in _COLUMNS.split(","))
    + " WHERE id = ?"
)
#: Rows of ``z_searchable`` in one statement; some SQLite libraries take 999 values at most.
_ROWS_AT_ONCE = 128


def put_all(
    sql: Sql,
    collection_id: int,
    documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
) -> list[int]:
    """As `qmd.store.files.FilesWriter.put_all`."""
    ids = []
    stored: dict[int, NewDocument] = {}
    for document, replace in documents:
        document_id = _put_rows(sql, collection_id, document, replace)
        ids.append(document_id)
        stored[document_id] = document
    in_order = sorted(stored.items())
    _put_parsed(sql, [(number, document.parsed) for number, document in in_order])
    _put_full_text(sql, [(number, document.fulltext) for number, document in in_order])
    return ids


def _put_rows(
    sql: Sql,
    collection_id: int,
    document: NewDocument,
    replace: DocumentPlace | None,
) -> int:
    """Its row and its chunks; takes out the other rows of a document that it replaces. Its id."""
    row = _row(collection_id, document)
    document_id = _id_to_replace(sql, collection_id, document.path, replace)
    if document_id is None:
        document_id = sql.connection.execute(_INSERT, row).lastrowid
        assert document_id is not None  # an INSERT has one
        _put_chunks(sql, document_id, document, old_text=None)
    else:
        (old_text,) = sql.connection.execute(
            "SELECT text FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        sql.connection.execute(_UPDATE, [*row, document_id])
        for table in ("tags", "aliases", "z_names", "links", "properties"):
            sql.connection.execute(f"DELETE FROM {table} WHERE document_id = ?", [document_id])
        _put_chunks(sql, document_id, document, old_text)
    return document_id


def _row(collection_id: int, document: NewDocument) -> list[object]:
    """The values of `_COLUMNS`."""
    parsed = document.parsed
    return [
        collection_id,
        document.path,
        name_key(document.path),
        parsed.title,
        parsed.description,
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
        json.dumps(_distinct(parsed.tags), ensure_ascii=False),
    ]


def _distinct(tags: Iterable[str]) -> list[str]:
    """As the table ``tags`` has them: without letter case, and in its order."""
    by_key: dict[bytes, str] = {}
    for tag in tags:
        by_key.setdefault(tag.encode("utf-8", "surrogatepass").lower(), tag)  # only ASCII letters
    return [tag for _, tag in sorted(by_key.items())]


def _id_to_replace(
    sql: Sql, collection_id: int, path: str, replace: DocumentPlace | None
) -> int | None:
    """The document at the path; if there is none, the one at ``replace``, if it is still there."""
    row = sql.connection.execute(
        "SELECT id FROM documents WHERE collection_id = ? AND path = ?", [collection_id, path]
    ).fetchone()
    if row is None and replace is not None:
        row = sql.connection.execute(
            "SELECT id FROM documents WHERE id = ? AND collection_id = ? AND path = ?",
            [replace.id, collection_id, replace.path],
        ).fetchone()
    return None if row is None else int(row[0])


def _put_parsed(sql: Sql, documents: Sequence[tuple[int, ParsedDocument]]) -> None:
    """
    Tags, names, links and properties of documents that have none stored.

    One statement for all documents, because most have few rows.
    """
    sql.connection.executemany(
        "INSERT OR IGNORE INTO tags VALUES (?, ?)",
        [(number, tag) for number, parsed in documents for tag in parsed.tags],
    )
    sql.connection.executemany(
        "INSERT OR IGNORE INTO aliases VALUES (?, ?)",
        [(number, alias) for number, parsed in documents for alias in parsed.aliases],
    )
    sql.connection.executemany(
        "INSERT OR IGNORE INTO z_names (document_id, kind, name_key) VALUES (?, ?, ?)",
        [row for number, parsed in documents for row in _name_rows(number, parsed)],
    )
    sql.connection.executemany(
        "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [row for number, parsed in documents for row in _link_rows(number, parsed.links)],
    )
    properties.put(sql, [(number, parsed.properties) for number, parsed in documents])


def _name_rows(number: int, parsed: ParsedDocument) -> Iterator[tuple[int, str, str]]:
    yield number, "title", fold(parsed.title)
    for alias in parsed.aliases:
        yield number, "alias", fold(alias)


def _link_rows(number: int, links: Sequence[Link]) -> Iterator[tuple[object, ...]]:
    for seq, link in enumerate(links):
        yield (
            number,
            seq,
            link.kind,
            link.target,
            link_key(link.kind, link.target),
            link.text if link.kind in {"wikilink", "embed"} else None,
            link.heading,
            link.block,
            link.line,
        )


def _put_full_text(sql: Sql, entries: Sequence[tuple[int, FullTextEntry]]) -> None:
    """
    Replacing the documents has taken their old rows out; triggers keep the index in step.

    Before each statement with triggers FTS5 writes the terms that it has gathered as a segment,
    which is merged with others later. So one statement stores many rows.
    """
    for start in range(0, len(entries), _ROWS_AT_ONCE):
        rows = entries[start : start + _ROWS_AT_ONCE]
        sql.connection.execute(
            "INSERT INTO z_searchable (document_id, title, headings, body, path, front, words,"
            " description)"
            " VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows)),
            [value for document_id, entry in rows for value in (document_id, *_entry(entry))],
        )


def _put_chunks(sql: Sql, document_id: int, document: NewDocument, old_text: str | None) -> None:
    """``old_text``: what the document said, None for a new one."""
    stored: list[StoredChunk] = []
    if old_text is not None:
        stored = [
            StoredChunk(*row)
            for row in sql.connection.execute(
                "SELECT id, hash, next_hash, model_id IS NOT NULL, start_char, end_char"
                " FROM chunks WHERE document_id = ? ORDER BY seq",
                [document_id],
            )
        ]
    inserts: list[tuple[object, ...]] = []
    updates: list[tuple[object, ...]] = []
    gone = {chunk.id for chunk in stored}
    for chunk, row, digest in zip(
        document.parsed.chunks,
        chunk_rows(stored, old_text or "", document),
        document.chunk_hashes,
        strict=True,
    ):
        place = (
            document_id,
            chunk.seq,
            chunk.start_char,
            chunk.end_char,
            chunk.start_byte,
            chunk.end_byte,
            chunk.start_line,
            chunk.end_line,
            " > ".join(chunk.heading_path),
            row.hash,
        )
        if row.id is None:
            inserts.append(place)
        else:
            gone.remove(row.id)
            updates.append((*place, row.next_hash, digest, row.id))
    if gone:
        delete_chunks(sql, sorted(gone))
    if updates:
        # The vector for the model that is to follow belongs to the text that it was made of.
        sql.connection.executemany(
            "UPDATE chunks SET document_id = ?, seq = ?, start_char = ?, end_char = ?,"
            " start_byte = ?, end_byte = ?, start_line = ?, end_line = ?, heading_path = ?,"
            " hash = ?, next_hash = ?, next_model_id = CASE coalesce(next_hash, hash)"
            " WHEN ? THEN next_model_id END WHERE id = ?",
            updates,
        )
    if inserts:
        sql.connection.executemany(
            "INSERT INTO chunks (document_id, seq, start_char, end_char, start_byte, end_byte,"
            " start_line, end_line, heading_path, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            inserts,
        )


def delete_chunks(sql: Sql, ids: Sequence[int]) -> None:
    sql.connection.executemany("DELETE FROM chunks WHERE id = ?", [(chunk_id,) for chunk_id in ids])
    vector_state.advance(sql)
