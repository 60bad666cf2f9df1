"""Counts for `status`, and what `cleanup` and `doctor` do to the file."""

from __future__ import annotations

from typing import NamedTuple

from qmd.store.sqlite import vector_state
from qmd.store.sqlite.library import Connection, ReadingConnection


class Counts(NamedTuple):
    """``needs_embedding``: distinct contents with a chunk that has no vector yet."""

    documents: int
    chunks: int
    chunks_embedded: int
    needs_embedding: int


def counts(connection: Connection) -> Counts:
    row = connection.execute(
        "SELECT (SELECT count(*) FROM documents),"
        " (SELECT count(*) FROM chunks),"
        " (SELECT count(*) FROM chunks WHERE model_id IS NULL)"
    ).fetchone()
    documents, chunks, waiting = row
    return Counts(documents, chunks, chunks - waiting, needs_embedding(connection))


def size(connection: Connection) -> int:
    """Bytes of the database as this snapshot sees it; a part may still lie in the WAL."""
    pages, page_size = connection.execute(
        "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
    ).fetchone()
    return int(pages * page_size)


def needs_embedding(connection: Connection) -> int:
    row = connection.execute(
        "SELECT count(DISTINCT d.hash) FROM documents d WHERE d.id IN"
        " (SELECT document_id FROM chunks WHERE model_id IS NULL)"
    ).fetchone()
    return int(row[0])


def documents_waiting(connection: Connection) -> int:
    """How many documents lack a vector: as `needs_embedding`, but cheap enough for every search."""
    if not isinstance(connection, ReadingConnection):
        return _count_documents_waiting(connection)
    # Counting 10,000 takes 2 ms, and most searches come when nobody has written since the last.
    # The first number moves with what others commit, the second with what is done here.
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    state = (int(version), connection.total_changes)
    if connection.waiting is None or connection.waiting[0] != state:
        connection.waiting = (state, _count_documents_waiting(connection))
    return connection.waiting[1]


def _count_documents_waiting(connection: Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT document_id FROM chunks WHERE model_id IS NULL)"
    ).fetchone()
    return int(row[0])


#: What `cleanup` removes: a name for people, the table and the condition.
_LEFTOVERS = (
    (
        "cached vectors of texts that are gone",
        "embeddings",
        "hash NOT IN (SELECT hash FROM chunks)",
    ),
    (
        "vectors of models that are not in use",
        "embeddings",
        "model_id NOT IN (SELECT id FROM models WHERE active OR next)"
        " AND hash IN (SELECT hash FROM chunks)",
    ),
    ("models that are not in use", "models", "NOT active AND NOT next"),
    # Only what was deleted by hand, with triggers switched off, leaves such rows behind.
    ("vectors without a chunk", "vectors", "chunk_id NOT IN (SELECT id FROM chunks)"),
)
_UNMATCHED = "full-text rows out of step with their documents"


def leftovers(connection: Connection) -> dict[str, int]:
    """What nothing refers to any more, counted."""
    found = {
        name: int(
            connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]
        )
        for name, table, condition in _LEFTOVERS
    }
    found[_UNMATCHED] = _unmatched(connection)
    return found


def remove_leftovers(connection: Connection) -> dict[str, int]:
    """Remove them; returns how many of each there were."""
    removed = {
        name: connection.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
        for name, table, condition in _LEFTOVERS
    }
    removed[_UNMATCHED] = _unmatched(connection)
    if removed[_UNMATCHED]:
        connection.execute("INSERT INTO documents_fts (documents_fts) VALUES ('rebuild')")
    vector_state.advance(connection)
    return removed


def _unmatched(connection: Connection) -> int:
    """Rows of the full-text index without a text, and texts without a row."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM documents_fts_docsize"
        "        WHERE id NOT IN (SELECT document_id FROM searchable)),"
        " (SELECT count(*) FROM searchable"
        "        WHERE document_id NOT IN (SELECT id FROM documents_fts_docsize))"
    ).fetchone()
    return int(sum(row))


def compact(connection: Connection) -> None:
    """Give free pages back to the disk. Not inside a transaction."""
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def problems(connection: Connection) -> list[str]:
    """What is wrong with the whole file, the first twenty findings; reads every page."""
    from itertools import islice

    from qmd.store.sqlite import damage

    found = list(islice(damage.problems(connection), 20))
    if not found:
        documents, indexed = connection.execute(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM documents_fts_docsize)"
        ).fetchone()
        if documents != indexed:
            found.append(f"{documents} documents, but {indexed} in the full-text index")
    return found
