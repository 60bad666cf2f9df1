"""
Vectors as search reads them: the nearest by a scan, and exact ones by chunk.

sqlite-vec's functions scan the int8 copies in the table ``vectors``; the nearest are rescored
with the exact vectors of ``embeddings``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qmd.store.sqlite import sqlite_vec
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.models import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sqlite.filters import Where

#: int8 copies are clip(round(256 x), ±63): sqlite-vec's NEON build overflows beyond.
SCALE, CLIP = 256, 63
#: Where more chunks are asked for, an exact scan of all is no slower.
MAX_K = 4096


def nearest(
    connection: Connection, model: Model, query: bytes, k: int, where: Where
) -> list[tuple[int, int, bytes]]:
    """
    The chunks nearest to a query, before exact rescoring.

    Args:
        query: int8[dimension] from `quantize`.
        k: How many; filtered before, so that many come where that many match.

    Returns:
        Chunk id, document id and exact vector (float16[dimension]), in no order.
    """
    sqlite_vec.load(connection)
    condition, values = "", tuple[object, ...]()
    if where.everything:
        pass
    elif where.collection_ids is not None:
        condition = f" AND collection_id IN ({', '.join('?' * len(where.collection_ids))})"
        values = where.collection_ids
    else:
        condition = (
            " AND chunk_id IN (SELECT k.id FROM chunks k JOIN documents d ON d.id = k.document_id"
            f" WHERE {where.sql})"
        )
        values = where.values
    # A vector of another length, in a damaged file, would be an error of the whole scan. The
    # sum of absolute differences takes half of the time of a Euclidean distance.
    rows = connection.execute(
        "SELECT n.chunk_id, c.document_id, e.vector FROM ("
        "SELECT chunk_id FROM vectors"
        f" WHERE model_id = ? AND length(embedding) = ?{condition}"
        " ORDER BY vec_distance_L1(vec_int8(embedding), vec_int8(?)), chunk_id LIMIT ?) n"
        " JOIN chunks c ON c.id = n.chunk_id"
        " JOIN embeddings e ON e.hash = c.hash AND e.model_id = ?",
        [model.id, model.dimension, *values, query, min(k, MAX_K), model.id],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def everything(
    connection: Connection, model: Model, where: Where
) -> Iterable[tuple[int, int, bytes]]:
    """As `nearest`, for all chunks that satisfy the condition: an exact scan."""
    return connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM chunks k"
        " JOIN documents d ON d.id = k.document_id"
        " JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        f" WHERE k.model_id IS NOT NULL AND {where.sql}",
        [model.id, *where.values],
    )


def count_chunks(connection: Connection) -> int:
    """How many chunks there are, with a vector or still without: known at once."""
    (count,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
    return int(count)


def indexed(connection: Connection) -> NDArray[np.int64]:
    """The ids of all chunks that have a vector, ascending."""
    import numpy as np

    # One text instead of 100,000 rows: a third of the time.
    (text,) = connection.execute(
        "SELECT group_concat(id) FROM chunks WHERE model_id IS NOT NULL"
    ).fetchone()
    return np.sort(np.fromstring(text or "", dtype=np.int64, sep=","))


def coded(connection: Connection, model: Model, ids: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Chunk id, collection id and exact vector of these chunks, by id, as far as there are."""
    rows = connection.execute(
        "SELECT k.id, d.collection_id, e.vector FROM json_each(?) j"
        " CROSS JOIN chunks k ON k.id = j.value"
        " CROSS JOIN documents d ON d.id = k.document_id"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        " WHERE k.model_id IS NOT NULL",
        [json.dumps(list(ids)), model.id],
    )
    return [(chunk, collection, vector) for chunk, collection, vector in rows]


def exact(
    connection: Connection, model: Model, ids: Sequence[int], where: Where
) -> list[tuple[int, int, bytes]]:
    """As `nearest`, for the chunks of these ids that satisfy the condition."""
    documents = "" if where.everything else " CROSS JOIN documents d ON d.id = k.document_id"
    rows = connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
        f" CROSS JOIN chunks k ON k.id = j.value{documents}"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        f" WHERE k.model_id IS NOT NULL AND {where.sql}",
        [json.dumps(list(ids)), model.id, *where.values],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def sample(connection: Connection, model: Model, most: int) -> list[bytes]:
    """Up to ``most`` of the model's vectors (float16[dimension]) from all over the index."""
    low, high = connection.execute("SELECT min(id), max(id) FROM embeddings").fetchone()
    if low is None:
        return []
    step = max(1, (high - low + 1) / most)
    ids = sorted({low + int(number * step) for number in range(most)})
    rows = connection.execute(
        "SELECT e.vector FROM json_each(?) j CROSS JOIN embeddings e ON e.id = j.value"
        " WHERE e.model_id = ?",
        [json.dumps(ids), model.id],
    ).fetchall()
    if len(rows) < most // 2:  # another model's are among them, or gaps where many were deleted
        rows = connection.execute(
            "SELECT vector FROM embeddings WHERE model_id = ? ORDER BY id LIMIT ?", [model.id, most]
        ).fetchall()
    return [vector for (vector,) in rows]


def of_documents(
    connection: Connection, model: Model, documents: Sequence[int], most: int
) -> list[tuple[int, int, bytes]]:
    """As `nearest`, for the first ``most`` chunks of these documents, by document and place."""
    rows = connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
        " CROSS JOIN chunks k ON k.document_id = j.value AND k.seq < ?"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        " WHERE k.model_id IS NOT NULL ORDER BY k.document_id, k.seq",
        [json.dumps(list(documents)), most, model.id],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def spans(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Chunk id → start_char, end_char, start_line."""
    rows = connection.execute(
        "SELECT id, start_char, end_char, start_line FROM chunks"
        " WHERE id IN (SELECT value FROM json_each(?))",
        [json.dumps(list(ids))],
    )
    return {number: (start, end, line) for number, start, end, line in rows}


# --- bytes ---------------------------------------------------------------------------


def pack(vectors: NDArray[np.float32]) -> list[bytes]:
    """
    float32[n, dimension] of unit norm → n times float16[dimension] as bytes.

    Raises:
        ValueError: A vector is not finite; sqlite-vec would accept NaN and find it everywhere.
    """
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return [row.tobytes() for row in vectors.astype(np.float16)]


def quantize(vector: bytes) -> bytes:
    """float16[dimension] → int8[dimension] as the index holds it."""
    import numpy as np

    exact = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
    return np.clip(np.rint(exact * SCALE), -CLIP, CLIP).astype(np.int8).tobytes()
