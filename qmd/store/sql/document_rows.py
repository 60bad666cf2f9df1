"""Writes the rows of a document: itself, tags, names, links, properties, chunks, full text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from qmd.store.sql import Sql, links, pictures, properties, shared
from qmd.system import clock
from qmd.values import NewDocument, ParsedDocument
from qmd.values.properties import property_rows
from qmd.values.text import fold, name_key

if TYPE_CHECKING:
    from qmd.store.sql.files import DocumentPlace

#: The columns of `_row`, but for ``tags``, which only a file has: for people who read it.
_COLUMNS = (
    "collection_id, path, name_key, title, description, hash, date, modified_at, bytes, mtime_ns,"
    " inode, device, encoding, parser_version, body_start, properties, warnings, indexed_at, text"
)
#: Where a chunk stands.
CHUNK_COLUMNS = (
    "document_id, seq, start_char, end_char, start_byte, end_byte, start_line, end_line,"
    " heading_path"
)

#: Documents that are written out, which takes room, and deleted before the next ones are.
_DELETED_AT_ONCE = 200


class _StoredChunk(NamedTuple):
    """A chunk of a document that is about to be replaced; ``next_hash`` as in the table."""

    id: int
    hash: bytes
    next_hash: bytes | None
    has_vector: bool
    start_char: int
    end_char: int


def put_all(
    sql: Sql,
    collection_id: int,
    documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
) -> list[int]:
    """As `qmd.store.sql.files.FilesWriter.put_all`."""
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
    for table in sql.dialect.parsed_tables if old_texts else ():
        sql.run(
            f"DELETE FROM {table} WHERE document_id {sql.among}",
            [sql.array(old_texts)],
        )
    _put_parsed(sql, [(number, document.parsed) for number, document in in_order])
    pictures.put(sql, {number: document.pictures for number, document in in_order})
    _put_chunks(sql, in_order, old_texts)
    sql.engine("full_text").put(sql.connection, in_order)
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
    stored = sql.column(
        f"SELECT path FROM documents WHERE collection_id = ? AND path {sql.among}",
        [collection_id, sql.array(paths)],
    )
    taken = {*stored} | {place.path for _, place in documents if place}
    taken |= {path for path, count in paths.items() if count > 1}
    is_plain = [place is None and document.path not in taken for document, place in documents]
    plain_documents = compress((document for document, _ in documents), is_plain)
    new = iter(_insert_rows(sql, [_row(sql, collection_id, each) for each in plain_documents]))
    return [
        (next(new), None) if plain else _put_row(sql, collection_id, document, place)
        for (document, place), plain in zip(documents, is_plain, strict=True)
    ]


def _insert_rows(sql: Sql, rows: Sequence[list[object]]) -> list[int]:
    """The id of each new row. They are stored in the order in which they fill pages."""
    order = sql.engine("upkeep").filling_order(rows)
    in_order = [rows[position] for position in order]
    numbers = sql.insert_numbered("documents", _columns(sql), in_order)
    ids = dict(zip(order, numbers, strict=True))
    return [ids[position] for position in range(len(rows))]


def _put_row(
    sql: Sql, collection_id: int, document: NewDocument, replace: DocumentPlace | None
) -> tuple[int, str | None]:
    """The id of the document, and what it said before; None for a new one."""
    row = _row(sql, collection_id, document)
    stored = _to_replace(sql, collection_id, document.path, replace)
    if stored is None:
        [number] = sql.insert_numbered("documents", _columns(sql), [row])
        return number, None
    write_out(sql, [stored[0]])
    changes = ", ".join(f"{column} = ?" for column in _columns(sql).split(", "))
    sql.run(f"UPDATE documents SET {changes} WHERE id = ?", [*row, stored[0]])
    return stored


def write_out(sql: Sql, ids: Sequence[int]) -> None:
    """Prepare documents that are about to change or to go, so that full text soon forgets them."""
    sql.engine("full_text").write_out(sql.connection, ids)


def delete_all(sql: Sql, collection_id: int) -> None:
    """Delete the documents of a collection, with all that is stored of them."""
    ids = sql.column("SELECT id FROM documents WHERE collection_id = ?", [collection_id])
    for start in range(0, len(ids), _DELETED_AT_ONCE):
        some = ids[start : start + _DELETED_AT_ONCE]
        write_out(sql, some)
        sql.run(f"DELETE FROM documents WHERE id {sql.among}", [sql.array(some)])


def _columns(sql: Sql) -> str:
    return f"{_COLUMNS}, tags" if sql.dialect.repeats_tags else _COLUMNS


def _row(sql: Sql, collection_id: int, document: NewDocument) -> list[object]:
    """The values of `_columns`."""
    parsed = document.parsed
    row: list[object] = [
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
        _json(parsed.properties) if parsed.properties else "{}",
        _json(parsed.warnings) if parsed.warnings else "[]",
        clock.now(),
        parsed.text,
    ]
    if sql.dialect.repeats_tags:
        row.append(_json(_distinct(parsed.tags)) if parsed.tags else "[]")
    return row


#: The shortest form, and as SQLite itself writes it: so ``tags`` are alike in all versions.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _distinct(tags: Iterable[str]) -> list[str]:
    """As the table ``tags`` has them: without letter case, and in its order."""
    by_key: dict[bytes, str] = {}
    for tag in tags:
        by_key.setdefault(tag.encode("utf-8", "surrogatepass").lower(), tag)  # only ASCII letters
    return [tag for _, tag in sorted(by_key.items())]


def _to_replace(
    sql: Sql, collection_id: int, path: str, replace: DocumentPlace | None
) -> tuple[int, str] | None:
    """
    The document at the path; if there is none, the one at ``replace``, if it is still there.

    Returns:
        Its id and its text.
    """
    row = sql.first(
        "SELECT id, text FROM documents WHERE collection_id = ? AND path = ?",
        [collection_id, path],
    )
    if row is None and replace is not None:
        row = sql.first(
            "SELECT id, text FROM documents WHERE id = ? AND collection_id = ? AND path = ?",
            [replace.id, collection_id, replace.path],
        )
    return None if row is None else (int(row[0]), str(row[1]))


def _put_parsed(sql: Sql, documents: Sequence[tuple[int, ParsedDocument]]) -> None:
    """Tags, names, links and properties of documents that have none stored."""
    sql.many(
        "INSERT INTO tags (document_id, tag) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(number, tag) for number, parsed in documents for tag in parsed.tags],
    )
    sql.many(
        "INSERT INTO aliases (document_id, alias) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(number, alias) for number, parsed in documents for alias in parsed.aliases],
    )
    sql.many(
        "INSERT INTO z_names (document_id, kind, name_key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [row for number, parsed in documents for row in _name_rows(number, parsed)],
    )
    links.put(sql, [(number, parsed.links) for number, parsed in documents])
    sql.insert(
        "anchors",
        "document_id, seq, kind, label, shown, line",
        [
            (number, seq, *anchor)
            for number, parsed in documents
            for seq, anchor in enumerate(parsed.anchors)
        ],
    )
    properties.put_properties(
        sql,
        [
            (number, property_rows(parsed.properties, parsed.numbers))
            for number, parsed in documents
        ],
    )
    tasks = [(number, parsed.tasks) for number, parsed in documents]
    properties.put_lines(sql, "tasks", tasks)
    facts = [(number, parsed.observations) for number, parsed in documents]
    properties.put_lines(sql, "observations", facts)


def _name_rows(number: int, parsed: ParsedDocument) -> Iterator[tuple[int, str, str]]:
    yield number, "title", fold(parsed.title)
    for alias in parsed.aliases:
        yield number, "alias", fold(alias)


def _put_chunks(
    sql: Sql,
    documents: Sequence[tuple[int, NewDocument]],
    old_texts: Mapping[int, str],
) -> None:
    """``old_texts``: what the documents that are replaced said, by their ids."""
    stored: dict[int, list[_StoredChunk]] = {}
    for document_id, *old in sql.run(
        "SELECT document_id, id, hash, next_hash, model_id IS NOT NULL, start_char, end_char"
        f" FROM chunks WHERE document_id {sql.among} ORDER BY document_id, seq",
        [sql.array(old_texts)],
    ):
        stored.setdefault(document_id, []).append(_StoredChunk(*old))
    inserts: list[tuple[object, ...]] = []
    updates: list[tuple[object, ...]] = []
    gone = {each.id for chunks in stored.values() for each in chunks}
    for document_id, document in documents:
        rows = _new_rows(document)
        if document_id in stored:
            rows = _chunk_rows(stored[document_id], old_texts.get(document_id, ""), document)
        for chunk, (chunk_id, hash_, next_hash), digest in zip(
            document.parsed.chunks, rows, document.chunk_hashes, strict=True
        ):
            *place, heading_path = chunk
            row = (document_id, *place, " > ".join(heading_path), hash_)
            if chunk_id is None:
                inserts.append(row)
            else:
                gone.remove(chunk_id)
                updates.append((*row, next_hash, digest, chunk_id))
    if gone:
        delete_chunks(sql, sorted(gone))
    # The vector for the model that is to follow belongs to the text that it was made of.
    sql.many(
        f"UPDATE chunks SET {CHUNK_COLUMNS.replace(',', ' = ?,')} = ?,"
        " hash = ?, next_hash = ?, next_model_id = CASE coalesce(next_hash, hash)"
        " WHEN ? THEN next_model_id END WHERE id = ?",
        updates,
    )
    sql.insert("chunks", f"{CHUNK_COLUMNS}, hash", inserts)


def _new_rows(document: NewDocument) -> list[tuple[int | None, bytes, bytes | None]]:
    """As `_chunk_rows`, without earlier chunks."""
    return [(None, digest, None) for digest in document.chunk_hashes]


def _chunk_rows(
    stored: Sequence[_StoredChunk], old_text: str, document: NewDocument
) -> list[tuple[int | None, bytes, bytes | None]]:
    """
    The rows of a document's chunks, in their order; each keeps a vector if there is one for it.

    Of each row the id (None: a new one), ``hash`` and ``next_hash``.

    A chunk takes the row of the same embedded text, else one with a vector of the same text below
    another title or other headings: its earlier vector answers until it has its own.
    """
    by_hash: dict[bytes, list[_StoredChunk]] = {}
    for chunk in reversed(stored):
        by_hash.setdefault(chunk.next_hash or chunk.hash, []).append(chunk)
    same = [
        by_hash[digest].pop() if by_hash.get(digest) else None for digest in document.chunk_hashes
    ]
    by_text: dict[str, list[_StoredChunk]] = {}
    if None in same:
        for chunk in (chunk for chunks in by_hash.values() for chunk in chunks if chunk.has_vector):
            by_text.setdefault(old_text[chunk.start_char : chunk.end_char], []).append(chunk)
    text = document.parsed.text
    rows: list[tuple[int | None, bytes, bytes | None]] = []
    for new, digest, row in zip(document.parsed.chunks, document.chunk_hashes, same, strict=True):
        if row is not None:
            rows.append((row.id, row.hash, row.next_hash))
        elif below_other_title := by_text.get(text[new.start_char : new.end_char]):
            earlier = below_other_title.pop()
            next_hash = None if earlier.hash == digest else digest
            rows.append((earlier.id, earlier.hash, next_hash))
        else:
            rows.append((None, digest, None))
    return rows


def delete_chunks(sql: Sql, ids: Sequence[int]) -> None:
    sql.run(f"DELETE FROM chunks WHERE id {sql.among}", [sql.array(ids)])
    shared.advance_vectors(sql)
