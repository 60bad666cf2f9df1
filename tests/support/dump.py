"""What a database says, without what may differ between two that say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qmd.store.reader import Reader
from qmd.store.sql import SQLITE, Sql
from qmd.store.sqlite import library as sqlite

Dump = dict[str, list[tuple[Any, ...]]]

_FILE = "(SELECT c.name || '/' || d.path FROM documents d JOIN collections c"
_FILE += " ON c.id = d.collection_id WHERE d.id = {})"

#: No ids, no times of runs, no inodes (-1 where a file was too young to be trusted).
_QUERIES = {
    "collections": "SELECT name, path, pattern, ignore, excluded FROM collections",
    "contexts": "SELECT c.name, x.prefix, x.text FROM contexts x"
    " LEFT JOIN collections c ON c.id = x.collection_id",
    "documents": f"SELECT {_FILE.format('x.id')}, name_key, title, description, hash, date,"
    " modified_at, bytes, mtime_ns, device, encoding, parser_version, body_start, properties,"
    " warnings, text"
    " FROM documents x",
    "tags": f"SELECT {_FILE.format('document_id')}, tag FROM tags",
    "aliases": f"SELECT {_FILE.format('document_id')}, alias FROM aliases",
    "anchors": f"SELECT {_FILE.format('document_id')}, seq, kind, label, shown, line FROM anchors",
    "names": f"SELECT {_FILE.format('document_id')}, kind, name_key FROM z_names",
    "attachments": "SELECT c.name, a.path, a.name_key"
    " FROM attachments a JOIN collections c ON c.id = a.collection_id",
    "links": f"SELECT {_FILE.format('document_id')}, seq, kind, target, target_key, text, heading,"
    " block, line FROM links",
    "chunks": f"SELECT {_FILE.format('document_id')}, seq, start_char, end_char, start_byte,"
    " end_byte, start_line, end_line, heading_path,"
    " hex(coalesce(next_hash, hash)) FROM chunks",
    "full text": f"SELECT {_FILE.format('z_documents_fts.rowid')}, title, headings, body, path,"
    " extra, description FROM z_documents_fts",
    "skipped": "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns"
    " FROM skipped_files s JOIN collections c ON c.id = s.collection_id",
}


def dump(database: Path) -> Dump:
    """Everything but vectors, each table in an order of its own."""
    connection = sqlite.connect(database, read_only=True)
    try:
        return {
            table: sorted(map(tuple, connection.execute(query)), key=repr)
            for table, query in _QUERIES.items()
        }
    finally:
        connection.close()


def vector_rows(database: Path) -> list[tuple[Any, ...]]:
    """Each chunk with its exact vector and its copy in the index, None where one is missing."""
    connection = sqlite.connect(database, read_only=True)
    try:
        model = Reader(Sql(connection, SQLITE)).models.active()
        if model is None:
            return []
        rows = list(
            connection.execute(
                f"SELECT {_FILE.format('k.document_id')}, k.seq, hex(k.hash),"
                " k.model_id = m.id, hex(e.vector), c.name, hex(v.embedding)"
                " FROM chunks k JOIN z_models m ON m.active"
                " LEFT JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
                " LEFT JOIN z_vectors v ON v.chunk_id = k.id AND v.model_id = m.id"
                " LEFT JOIN collections c ON c.id = v.collection_id"
            )
        )
        indexed = connection.execute(
            "SELECT count(*) FROM z_vectors WHERE model_id = ?", [model.id]
        ).fetchone()[0]
        return [*sorted(map(tuple, rows), key=repr), ("rows in the index", indexed)]
    finally:
        connection.close()


def assert_sound(database: Path) -> None:
    """SQLite, foreign keys and FTS5 find nothing wrong, and every text row has its document."""
    connection = sqlite.connect(database, read_only=False)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute(
            "INSERT INTO z_documents_fts (z_documents_fts, rank) VALUES ('integrity-check', 1)"
        )
        documents = connection.execute("SELECT id FROM documents ORDER BY id").fetchall()
        rows = connection.execute("SELECT id FROM z_documents_fts_docsize ORDER BY id").fetchall()
        assert rows == documents
    finally:
        connection.close()
