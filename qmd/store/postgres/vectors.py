"""
Reads vectors for search: the nearest ones by a scan, and exact ones by chunk.

pgvector scans its copies in the table ``z_vectors``. A server without the extension sends the exact
vectors of ``z_embeddings``, and this program compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.store.postgres import nearest_index, pgvector
from qmd.store.postgres.library import Connection, stream
from qmd.store.postgres.rows import one, require_sql
from qmd.store.sql import Sql, vector_state
from qmd.store.sql.models import StoredModel
from qmd.store.vectors import MAX_NEAREST, pack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.selection import Selection
    from qmd.store.sql.filters import SqlSelection

_EXACT = "SELECT k.id, k.document_id, e.vector"
_FROM = (
    "FROM chunks k JOIN documents d ON d.id = k.document_id"
    " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = %s"
    " WHERE k.model_id IS NOT NULL"
)
#: Rows that this program compares at once, where the server cannot.
_ROWS_AT_ONCE = 10_000


class PostgresVectors:
    """`qmd.store.vectors.Vectors` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def nearest(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        where, k = require_sql(selection), min(k, MAX_NEAREST)
        schema = pgvector.schema(self._connection)
        if schema is None or model.dimension > pgvector.MAX_DIMENSION:
            return self._compared_here(model, query, k, where)
        packed = pgvector.text(pack_vectors(query[None])[0])
        if (
            where.is_all
            and k <= nearest_index.MOST_NEAREST
            and nearest_index.exists(self._connection, model)
        ):
            ids = nearest_index.nearest_ids(self._connection, schema, model, k)
            rows = self._with_vectors(ids, [packed, model.id])
            if len(rows) == k:
                return rows
        condition, values = "", tuple[object, ...]()
        if where.is_all:
            pass
        elif where.collection_ids is not None:
            condition = " AND v.collection_id = ANY(%s)"
            values = (list(where.collection_ids),)
        else:
            condition = (
                " AND v.chunk_id IN (SELECT k.id FROM documents d"
                f" JOIN chunks k ON k.document_id = d.id WHERE {where.sql})"
            )
            values = where.values
        return self._with_vectors(
            f"SELECT v.chunk_id FROM z_vectors v WHERE v.model_id = %s{condition}"
            f" ORDER BY v.embedding OPERATOR({schema}.<#>) %s::{schema}.halfvec, v.chunk_id"
            " LIMIT %s",
            [model.id, *values, packed, k, model.id],
        )

    def _with_vectors(self, ids: str, values: Sequence[object]) -> list[tuple[int, int, bytes]]:
        """Rows of the chunks that a SELECT gives; behind its values stands the model's id."""
        return self._rows(
            f"SELECT n.chunk_id, c.document_id, e.vector FROM ({ids}) n"
            " JOIN chunks c ON c.id = n.chunk_id"
            " JOIN z_embeddings e ON e.hash = c.hash AND e.model_id = %s",
            values,
        )

    def _compared_here(
        self, model: StoredModel, query: NDArray[np.float32], k: int, where: SqlSelection
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, by reading all vectors of the selected documents."""
        rounded = query.astype(libraries.np.float16).astype(
            libraries.np.float32
        )  # as pgvector gets it
        best: list[tuple[int, int, bytes]] = []
        rows = iter(self.all(model, where))
        while batch := [row for row, _ in zip(rows, range(_ROWS_AT_ONCE), strict=False)]:
            best += batch
            packed = libraries.np.frombuffer(b"".join(row[2] for row in best), libraries.np.float16)
            scores = packed.reshape(len(best), -1).astype(libraries.np.float32) @ rounded
            best = [best[place] for place in libraries.np.argsort(-scores, kind="stable")[:k]]
        return best

    def all(self, model: StoredModel, selection: Selection) -> Iterable[tuple[int, int, bytes]]:
        where = require_sql(selection)
        rows = stream(
            self._connection,
            f"{_EXACT} {_FROM} AND {where.sql}",
            [model.id, *where.values],
            rows_at_once=_ROWS_AT_ONCE,
            binary=True,
        )
        return ((chunk, document, vector) for chunk, document, vector in rows)

    def count_chunks(self) -> int:
        return int(one(self._connection, "SELECT count(*) FROM chunks")[0])

    def indexed_chunk_ids(self) -> NDArray[np.int64]:
        # One text instead of 100,000 rows.
        sql = "SELECT string_agg(id::text, ',') FROM chunks WHERE model_id IS NOT NULL"
        text = one(self._connection, sql)[0]
        return libraries.np.sort(
            libraries.np.fromstring(text or "", dtype=libraries.np.int64, sep=",")
        )

    def with_places(
        self, model: StoredModel, ids: Sequence[int]
    ) -> list[tuple[int, int, int, bytes]]:
        return self._connection.execute(
            f"SELECT k.id, d.id, d.collection_id, e.vector {_FROM} AND k.id = ANY(%s)",
            [model.id, list(ids)],
            binary=True,
        ).fetchall()

    def rounded(
        self, model: StoredModel, after: int, limit: int
    ) -> list[tuple[int, int, int, NDArray[np.float32]]]:
        rows = self._connection.execute(
            f"SELECT k.id, d.id, d.collection_id, e.vector {_FROM} AND k.id > %s"
            " AND length(e.vector) = %s ORDER BY k.id LIMIT %s",
            [model.id, after, 2 * model.dimension, limit],
            binary=True,
        ).fetchall()
        packed = libraries.np.frombuffer(b"".join(row[3] for row in rows), libraries.np.float16)
        values = packed.reshape(len(rows), model.dimension).astype(libraries.np.float32)
        return [(*row[:3], vector) for row, vector in zip(rows, values, strict=True)]

    def waiting_chunk_ids(self) -> list[int]:
        rows = self._connection.execute("SELECT id FROM chunks WHERE model_id IS NULL")
        return [chunk_id for (chunk_id,) in rows]

    def embedded_since(self, last_id: int, waiting_ids: Sequence[int]) -> list[int]:
        rows = self._connection.execute(
            "SELECT id FROM chunks WHERE id > %s AND model_id IS NOT NULL"
            " UNION SELECT id FROM chunks WHERE id = ANY(%s) AND model_id IS NOT NULL ORDER BY 1",
            [last_id, list(waiting_ids)],
        )
        return [chunk_id for (chunk_id,) in rows]

    def exact(
        self, model: StoredModel, ids: Sequence[int], selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        where = require_sql(selection)
        return self._rows(
            f"{_EXACT} {_FROM} AND k.id = ANY(%s) AND {where.sql}",
            [model.id, list(ids), *where.values],
        )

    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        # By their hashes: in no order of their meaning, and the same on every engine and machine.
        rows = self._connection.execute(
            "SELECT vector FROM z_embeddings WHERE model_id = %s ORDER BY hash LIMIT %s",
            [model.id, most],
            binary=True,
        )
        return [vector for (vector,) in rows]

    def for_documents(
        self, model: StoredModel, documents: Sequence[int], most: int
    ) -> list[tuple[int, int, bytes]]:
        return self._rows(
            f"{_EXACT} {_FROM} AND k.document_id = ANY(%s) AND k.seq < %s"
            " ORDER BY k.document_id, k.seq",
            [model.id, list(documents), most],
        )

    def chunk_spans(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        rows = self._connection.execute(
            "SELECT id, start_char, end_char, start_line FROM chunks WHERE id = ANY(%s)",
            [list(ids)],
        )
        return {chunk_id: (start, end, line) for chunk_id, start, end, line in rows}

    def version(self) -> tuple[int, int]:
        return vector_state.read(self._sql)

    def require_engine(self) -> str:
        version = pgvector.version(self._connection)
        if version:
            return f"pgvector {version}"
        return (
            f"numpy {libraries.np.__version__} (no pgvector): searches by meaning read all vectors."
            " To make them faster: CREATE EXTENSION vector, then 'qmd embed'"
        )

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[int, int, bytes]]:
        rows = self._connection.execute(sql, values, binary=True)
        return [(chunk, document, vector) for chunk, document, vector in rows]
