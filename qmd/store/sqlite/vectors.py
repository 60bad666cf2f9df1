"""
Reads vectors for search: the nearest ones by a scan, and exact ones by chunk.

sqlite-vec's functions scan the int8 copies in the table ``z_vectors``; the nearest are rescored
with the exact vectors of ``z_embeddings``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.store.sql import Sql, vector_state
from qmd.store.sql.filters import require_sql
from qmd.store.sql.models import StoredModel
from qmd.store.sqlite import sqlite_vec
from qmd.store.sqlite.library import Connection
from qmd.store.vectors import MAX_NEAREST, pack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.selection import Selection


class SqliteVectors:
    """`qmd.store.vectors.Vectors` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def nearest(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        where = require_sql(selection)
        sqlite_vec.load(self._connection)
        condition, values = "", tuple[object, ...]()
        if where.is_all:
            pass
        elif where.collection_ids is not None:
            condition = f" AND collection_id IN ({', '.join('?' * len(where.collection_ids))})"
            values = where.collection_ids
        else:
            condition = (
                " AND chunk_id IN"
                " (SELECT k.id FROM chunks k JOIN documents d ON d.id = k.document_id"
                f" WHERE {where.sql})"
            )
            values = where.values
        # A vector of another length, in a damaged file, would be an error of the whole scan. The
        # sum of absolute differences takes half of the time of a Euclidean distance.
        rows = self._connection.execute(
            "SELECT n.chunk_id, c.document_id, e.vector FROM ("
            "SELECT chunk_id FROM z_vectors"
            f" WHERE model_id = ? AND length(embedding) = ?{condition}"
            " ORDER BY vec_distance_L1(vec_int8(embedding), vec_int8(?)), chunk_id LIMIT ?) n"
            " JOIN chunks c ON c.id = n.chunk_id"
            " JOIN z_embeddings e ON e.hash = c.hash AND e.model_id = ?",
            [
                model.id,
                model.dimension,
                *values,
                sqlite_vec.quantize(pack_vectors(query[None])[0]),
                min(k, MAX_NEAREST),
                model.id,
            ],
        )
        return [(chunk, document, vector) for chunk, document, vector in rows]

    def all(self, model: StoredModel, selection: Selection) -> Iterable[tuple[int, int, bytes]]:
        where = require_sql(selection)
        return self._connection.execute(
            "SELECT k.id, k.document_id, e.vector FROM chunks k"
            " JOIN documents d ON d.id = k.document_id"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.model_id IS NOT NULL AND {where.sql}",
            [model.id, *where.values],
        )

    def count_chunks(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return int(count)

    def indexed_chunk_ids(self) -> NDArray[np.int64]:
        # One text instead of 100,000 rows: a third of the time.
        (text,) = self._connection.execute(
            "SELECT group_concat(id) FROM chunks WHERE model_id IS NOT NULL"
        ).fetchone()
        return libraries.np.sort(
            libraries.np.fromstring(text or "", dtype=libraries.np.int64, sep=",")
        )

    def with_places(
        self, model: StoredModel, ids: Sequence[int]
    ) -> list[tuple[int, int, int, bytes]]:
        return self._connection.execute(
            "SELECT k.id, d.id, d.collection_id, e.vector FROM json_each(?) j"
            " CROSS JOIN chunks k ON k.id = j.value"
            " CROSS JOIN documents d ON d.id = k.document_id"
            " CROSS JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            " WHERE k.model_id IS NOT NULL",
            [json.dumps(list(ids)), model.id],
        ).fetchall()

    def rounded(
        self, model: StoredModel, after: int, limit: int
    ) -> list[tuple[int, int, int, NDArray[np.float32]]]:
        rows = self._connection.execute(
            "SELECT v.chunk_id, k.document_id, v.collection_id, v.embedding FROM z_vectors v"
            " CROSS JOIN chunks k ON k.id = v.chunk_id"
            " WHERE v.chunk_id > ? AND v.model_id = ? AND k.model_id IS NOT NULL"
            " AND length(v.embedding) = ? ORDER BY v.chunk_id LIMIT ?",
            [after, model.id, model.dimension, limit],
        ).fetchall()
        packed = libraries.np.frombuffer(b"".join(row[3] for row in rows), libraries.np.int8)
        values = (
            packed.reshape(len(rows), model.dimension).astype(libraries.np.float32)
            / sqlite_vec.SCALE
        )
        return [(*row[:3], vector) for row, vector in zip(rows, values, strict=True)]

    def waiting_chunk_ids(self) -> list[int]:
        rows = self._connection.execute("SELECT id FROM chunks WHERE model_id IS NULL")
        return [chunk_id for (chunk_id,) in rows]

    def embedded_since(self, last_id: int, waiting_ids: Sequence[int]) -> list[int]:
        rows = self._connection.execute(
            "SELECT id FROM chunks WHERE id > ? AND model_id IS NOT NULL UNION"
            " SELECT k.id FROM json_each(?) j CROSS JOIN chunks k ON k.id = j.value"
            " WHERE k.model_id IS NOT NULL ORDER BY 1",
            [last_id, json.dumps(list(waiting_ids))],
        )
        return [chunk_id for (chunk_id,) in rows]

    def exact(
        self, model: StoredModel, ids: Sequence[int], selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        where = require_sql(selection)
        documents = "" if where.is_all else " CROSS JOIN documents d ON d.id = k.document_id"
        rows = self._connection.execute(
            "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
            f" CROSS JOIN chunks k ON k.id = j.value{documents}"
            " CROSS JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.model_id IS NOT NULL AND {where.sql}",
            [json.dumps(list(ids)), model.id, *where.values],
        )
        return [(chunk, document, vector) for chunk, document, vector in rows]

    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        # By their hashes: in no order of their meaning, and the same on every engine and machine.
        rows = self._connection.execute(
            "SELECT vector FROM z_embeddings WHERE model_id = ? ORDER BY hash LIMIT ?",
            [model.id, most],
        )
        return [vector for (vector,) in rows]

    def for_documents(
        self, model: StoredModel, documents: Sequence[int], most: int
    ) -> list[tuple[int, int, bytes]]:
        rows = self._connection.execute(
            "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
            " CROSS JOIN chunks k ON k.document_id = j.value AND k.seq < ?"
            " CROSS JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            " WHERE k.model_id IS NOT NULL ORDER BY k.document_id, k.seq",
            [json.dumps(list(documents)), most, model.id],
        )
        return [(chunk, document, vector) for chunk, document, vector in rows]

    def chunk_spans(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        rows = self._connection.execute(
            "SELECT id, start_char, end_char, start_line FROM chunks"
            " WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(ids))],
        )
        return {chunk_id: (start, end, line) for chunk_id, start, end, line in rows}

    def version(self) -> tuple[int, int]:
        return vector_state.read(self._sql)

    def require_engine(self) -> str:
        return f"sqlite-vec {sqlite_vec.load(self._connection)}"
