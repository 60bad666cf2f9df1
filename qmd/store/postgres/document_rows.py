"""Writes the rows of a document: itself, tags, names, links, properties, chunks, full text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from qmd.store.embeddings import StoredChunk, chunk_rows
from qmd.store.files import DocumentPlace
from qmd.store.postgres import postings
from qmd.store.postgres.rows import many, one, returned
from qmd.store.sql import Sql, properties, vector_state
from qmd.system import clock
from qmd.values import Link, NewDocument, ParsedDocument
from qmd.values.names import fold, link_key, name_key

_COLUMNS = (
    "collection_id, path, name_key, title, description, hash, date, modified_at, bytes, mtime_ns,"
    " inode, device, encoding, parser_version, body_start, properties, warnings, indexed_at, text"
)
_INSERT = f"INSERT INTO documents ({_COLUMNS}) VALUES ({', '.join(['%s'] * 19)}) RETURNING id"
_UPDATE = (
    "UPDATE documents SET "
    + ", ".join(f"{column.strip()} = %s" for column in _COLUMNS.split(","))
    + " WHERE id = %s"
)
_PARSED_TABLES = ("tags", "aliases", "z_names", "links", "properties")


def put_all(
    sql: Sql,
    collection_id: int,
    documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
) -> list[int]:
    """As `qmd.store.files.FilesWriter.put_all`."""
    ids = []
    stored: dict[int, NewDocument] = {}
    old_texts: dict[int, str] = {}
    batch = list(documents)
    for (document, _), (document_id, old_text) in zip(
        batch, _put_rows(sql, collection_id, batch), strict=True
    ):
        ids.append(document_id)
        stored[document_id] = document
        if old_text is not None:  # of two that replace it, the first has replaced the chunks' text
            old_texts.setdefault(document_id, old_text)
    in_order = sorted(stored.items())
    for table in _PARSED_TABLES if old_texts else ():
        sql.connection.execute(
            f"DELETE FROM {table} WHERE document_id = ANY(%s)", [list(old_texts)]
        )
    _put_parsed(sql, [(number, document.parsed) for number, document in in_order])
    _put_chunks(sql, in_order, old_texts)
    postings.put(sql.connection, in_order)
    return ids


def _put_rows(
    sql: Sql,
    collection_id: int,
    documents: Sequence[tuple[NewDocument, DocumentPlace | None]],
) -> list[tuple[int, str | None]]:
    """
    The id of each document, and what it said before; None for a new one.

    The documents of new paths take few round trips; the others are put one after the other.
    """
    paths = Counter(document.path for document, _ in documents)
    stored = sql.connection.execute(
        "SELECT path FROM documents WHERE collection_id = %s AND path = ANY(%s)",
        [collection_id, list(paths)],
    )
    taken = {path for (path,) in stored} | {place.path for _, place in documents if place}
    taken |= {path for path, count in paths.items() if count > 1}
    is_plain = [place is None and document.path not in taken for document, place in documents]
    new = iter(
        returned(
            sql.connection,
            _INSERT,
            [
                _row(collection_id, document)
                for (document, _), plain in zip(documents, is_plain, strict=True)
                if plain
            ],
        )
    )
    return [
        (int(next(new)[0]), None) if plain else _put_row(sql, collection_id, document, place)
        for (document, place), plain in zip(documents, is_plain, strict=True)
    ]


def _put_row(
    sql: Sql,
    collection_id: int,
    document: NewDocument,
    replace: DocumentPlace | None,
) -> tuple[int, str | None]:
    """The id of the document, and what it said before; None for a new one."""
    row = _row(collection_id, document)
    stored = _to_replace(sql, collection_id, document.path, replace)
    if stored is None:
        return int(one(sql.connection, _INSERT, row)[0]), None
    sql.connection.execute(_UPDATE, [*row, stored[0]])
    return stored


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
    ]


def _to_replace(
    sql: Sql, collection_id: int, path: str, replace: DocumentPlace | None
) -> tuple[int, str] | None:
    """
    The document at the path; if there is none, the one at ``replace``, if it is still there.

    Returns:
        Its id and its text.
    """
    row = sql.connection.execute(
        "SELECT id, text FROM documents WHERE collection_id = %s AND path = %s",
        [collection_id, path],
    ).fetchone()
    if row is None and replace is not None:
        row = sql.connection.execute(
            "SELECT id, text FROM documents WHERE id = %s AND collection_id = %s AND path = %s",
            [replace.id, collection_id, replace.path],
        ).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))


def _put_parsed(sql: Sql, documents: Sequence[tuple[int, ParsedDocument]]) -> None:
    """Tags, names, links and properties of documents that have none stored."""
    many(
        sql.connection,
        "INSERT INTO tags (document_id, tag) VALUES (%s, %s) ON CONFLICT DO NOTHING",
        [(number, tag) for number, parsed in documents for tag in parsed.tags],
    )
    many(
        sql.connection,
        "INSERT INTO aliases (document_id, alias) VALUES (%s, %s) ON CONFLICT DO NOTHING",
        [(number, alias) for number, parsed in documents for alias in parsed.aliases],
    )
    many(
        sql.connection,
        "INSERT INTO z_names (document_id, kind, name_key) VALUES (%s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        [row for number, parsed in documents for row in _name_rows(number, parsed)],
    )
    many(
        sql.connection,
        "INSERT INTO links (document_id, seq, kind, target, target_key, text, heading, block, line)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
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


def _put_chunks(
    sql: Sql,
    documents: Sequence[tuple[int, NewDocument]],
    old_texts: Mapping[int, str],
) -> None:
    """``old_texts``: what the documents that are replaced said, by their ids."""
    stored: dict[int, list[StoredChunk]] = {}
    for document_id, *old in sql.connection.execute(
        "SELECT document_id, id, hash, next_hash, model_id IS NOT NULL, start_char, end_char"
        " FROM chunks WHERE document_id = ANY(%s) ORDER BY document_id, seq",
        [list(old_texts)],
    ):
        stored.setdefault(document_id, []).append(StoredChunk(*old))
    inserts: list[tuple[object, ...]] = []
    updates: list[tuple[object, ...]] = []
    gone = {each.id for chunks in stored.values() for each in chunks}
    for document_id, document in documents:
        rows = chunk_rows(stored.get(document_id, ()), old_texts.get(document_id, ""), document)
        for chunk, row, digest in zip(
            document.parsed.chunks, rows, document.chunk_hashes, strict=True
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
        sql.connection.execute("DELETE FROM chunks WHERE id = ANY(%s)", [sorted(gone)])
        vector_state.advance(sql)
    # The vector for the model that is to follow belongs to the text that it was made of.
    many(
        sql.connection,
        "UPDATE chunks SET document_id = %s, seq = %s, start_char = %s, end_char = %s,"
        " start_byte = %s, end_byte = %s, start_line = %s, end_line = %s, heading_path = %s,"
        " hash = %s, next_hash = %s, next_model_id = CASE coalesce(next_hash, hash)"
        " WHEN %s THEN next_model_id END WHERE id = %s",
        updates,
    )
    many(
        sql.connection,
        "INSERT INTO chunks (document_id, seq, start_char, end_char, start_byte, end_byte,"
        " start_line, end_line, heading_path, hash)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        inserts,
    )
