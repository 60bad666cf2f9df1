"""Reads chunks with what is embedded of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.store.embeddings import ChunkText

if TYPE_CHECKING:
    from qmd.store.postgres.library import Connection


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
    texts: dict[int, str] = dict(
        connection.execute(
            "SELECT id, text FROM documents WHERE id = ANY(%s)", [list({row[4] for row in rows})]
        ).fetchall()
    )
    return [
        ChunkText(chunk_id, digest, title, heading_path, texts[document_id][start:end])
        for chunk_id, digest, title, heading_path, document_id, start, end in rows
    ]
