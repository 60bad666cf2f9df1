"""Reads chunks with what is embedded of them."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.embeddings import ChunkText
from qmd.store.sqlite.library import Connection


def chunk_texts(connection: Connection, clauses: str, values: Sequence[object]) -> list[ChunkText]:
    """
    The chunks that the clauses select.

    Args:
        clauses: SQL behind ``FROM chunks k JOIN documents d``.
    """
    rows = connection.execute(
        "SELECT k.id, coalesce(k.next_hash, k.hash), d.title, k.heading_path, k.document_id,"
        " k.start_char, k.end_char"
        f" FROM chunks k JOIN documents d ON d.id = k.document_id{clauses}",
        values,
    ).fetchall()
    # Sliced here: SQL's substr() would count through a long text once for each chunk.
    texts: dict[int, str] = {}
    chunks = []
    for chunk_id, digest, title, heading_path, document_id, start, end in rows:
        if document_id not in texts:
            (texts[document_id],) = connection.execute(
                "SELECT text FROM documents WHERE id = ?", [document_id]
            ).fetchone()
        text = texts[document_id][start:end]
        chunks.append(ChunkText(chunk_id, digest, title, heading_path, text))
    return chunks
