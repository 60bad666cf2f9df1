"""The vectors of chunks: a scan for the nearest, and the exact vectors of given chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd import libraries
from qmd.store.sql import Capability, Row, Sql, shared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sql.filters import Selection
    from qmd.store.sql.models import StoredModel

#: `Vectors.nearest` returns at most this many chunks; for more, `Vectors.all` is as fast.
MAX_NEAREST = 4096
#: Rows that this program compares at once, where the engine cannot.
_ROWS_AT_ONCE = 10_000


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """
    Vectors in the form that is stored: n times float16[dimension], as bytes.

    Args:
        vectors: float32[n, dimension], unit norm.

    Raises:
        ValueError: A vector is not finite. (Engines accept NaN and return it for every query.)
    """
    if not libraries.np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return [row.tobytes() for row in vectors.astype(libraries.np.float16)]


class RoundedForm(NamedTuple):
    """
    From what an engine reads many vectors fastest.

    Attributes:
        statement: It takes a chunk id, a model id, the bytes of a vector, and a limit.
        kind: The type of the numbers.
        scale: They are multiplied by it.
    """

    statement: str
    kind: str
    scale: int


class Vectors(Capability):
    """
    Searches the vectors of chunks.

    Rows are ``(chunk id, document id, vector)``. A vector is float16[dimension] of unit norm, in
    the form of `pack_vectors`.
    """

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._engine = sql.engine("vectors")

    def nearest(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """
        The chunks nearest to a query, before exact rescoring.

        Args:
            query: float32[dimension], unit norm.
            k: How many rows to return, at most `MAX_NEAREST`; fewer are returned only if the
                selection has fewer.

        Returns:
            Rows in no order, with the exact vectors, by which a caller ranks them.

        Raises:
            VectorsUnavailableError: The library that compares vectors cannot be loaded here.
        """
        k = min(k, MAX_NEAREST)
        condition, values = "", selection.values
        if selection.is_all:
            pass
        elif selection.collection_ids is not None:
            condition = f" AND v.collection_id {self._sql.among}"
            values = (self._sql.array(selection.collection_ids),)
        else:
            condition = (
                " AND v.chunk_id IN (SELECT k.id FROM documents d"
                f" JOIN chunks k ON k.document_id = d.id WHERE {selection.sql})"
            )
        rows = None
        for ids, parameters in self._engine.nearest_ids(
            self._sql, model, query, k, condition, values
        ):
            rows = self._rows(
                f"SELECT n.chunk_id, c.document_id, e.vector FROM ({ids}) n"
                " JOIN chunks c ON c.id = n.chunk_id"
                " JOIN z_embeddings e ON e.hash = c.hash AND e.model_id = ?",
                [*parameters, model.id],
            )
            if len(rows) == k:
                break
        return self._compared_here(model, query, k, selection) if rows is None else rows

    def _compared_here(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, by reading all vectors of the selected documents."""
        np = libraries.np
        rounded = query.astype(np.float16).astype(np.float32)  # as the engine would get it
        best: list[tuple[int, int, bytes]] = []
        rows = iter(self.all(model, selection))
        while batch := [row for row, _ in zip(rows, range(_ROWS_AT_ONCE), strict=False)]:
            best += batch
            packed = np.frombuffer(b"".join(row[2] for row in best), np.float16)
            scores = packed.reshape(len(best), -1).astype(np.float32) @ rounded
            best = [best[place] for place in np.argsort(-scores, kind="stable")[:k]]
        return best

    def all(self, model: StoredModel, selection: Selection) -> Iterable[tuple[int, int, bytes]]:
        """As `nearest`, for all chunks of the selected documents."""
        return self._sql.stream(
            "SELECT k.id, k.document_id, e.vector FROM chunks k"
            " JOIN documents d ON d.id = k.document_id"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.model_id IS NOT NULL AND {selection.sql}",
            [model.id, *selection.values],
            rows_at_once=_ROWS_AT_ONCE,
        )

    def count_chunks(self) -> int:
        """How many chunks there are, with or without a vector. The call is cheap."""
        return self._sql.number("SELECT count(*) FROM chunks")

    def with_places(
        self, model: StoredModel, ids: Sequence[int]
    ) -> list[tuple[int, int, int, bytes]]:
        """
        Rows ``(chunk id, document id, collection id, vector)`` of these chunks, by chunk id.

        Chunks that do not exist, or have no vector, are left out.
        """
        return self._of_chunks("k.id, d.id, d.collection_id, e.vector", model, ids)

    def exact(
        self, model: StoredModel, ids: Sequence[int], selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for those chunks of these ids whose documents are selected."""
        return self._of_chunks(
            "k.id, k.document_id, e.vector", model, ids, selection.sql, selection.values
        )

    def _of_chunks(
        self,
        columns: str,
        model: StoredModel,
        ids: Sequence[int],
        condition: str = "true",
        values: Sequence[object] = (),
    ) -> list[Row]:
        """Columns of these chunks ``k``, by id, and of their documents ``d`` if any is named."""
        dialect = self._sql.dialect
        documents = f" {dialect.first} documents d ON d.id = k.document_id"
        return self._sql.run(
            f"SELECT {columns} FROM chunks k{documents if 'd.' in columns + condition else ''}"
            f" {dialect.first} z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.id {dialect.among} AND k.model_id IS NOT NULL AND {condition}"
            " ORDER BY k.id",
            [model.id, dialect.array(ids), *values],
            as_binary=True,
        ).fetchall()

    def rounded(
        self, model: StoredModel, after: int, limit: int
    ) -> list[tuple[int, int, int, NDArray[np.float32]]]:
        """
        As `with_places`, for ids above ``after``; the vectors are less exact.

        Reading all vectors so takes a fifth of the time. Each is float32[dimension].
        """
        np, form = libraries.np, self._engine.ROUNDED
        rows = self._sql.run(
            form.statement,
            [after, model.id, model.dimension * np.dtype(form.kind).itemsize, limit],
            as_binary=True,
        ).fetchall()
        packed = np.frombuffer(b"".join(row[3] for row in rows), form.kind)
        values = packed.reshape(len(rows), model.dimension).astype(np.float32) / form.scale
        return [(*row[:3], vector) for row, vector in zip(rows, values, strict=True)]

    def waiting_chunk_ids(self) -> list[int]:
        """The ids of the chunks that have no vector."""
        return self._sql.column("SELECT id FROM chunks WHERE model_id IS NULL")

    def embedded_since(self, last_id: int, waiting_ids: Sequence[int]) -> list[int]:
        """The ids above ``last_id``, and those of ``waiting_ids``, that have a vector, sorted."""
        return self._sql.column(
            "SELECT id FROM chunks WHERE id > ? AND model_id IS NOT NULL UNION SELECT id FROM"
            f" chunks WHERE id {self._sql.among} AND model_id IS NOT NULL ORDER BY 1",
            [last_id, self._sql.array(waiting_ids)],
        )

    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        """
        At most ``most`` vectors (float16[dimension]), spread over the index.

        They are chosen by the hashes of their texts, so all engines choose the same; in a scope
        by the ids of their chunks, because the table of vectors does not say whose text one is of.
        """
        sql = "SELECT vector FROM z_embeddings WHERE model_id = ? ORDER BY hash LIMIT ?"
        values = [model.id, most]
        if self._sql.is_scoped:
            sql = (
                "SELECT e.vector FROM chunks k"
                " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
                " WHERE k.model_id IS NOT NULL AND k.id % ? = 0 LIMIT ?"
            )
            values = [model.id, max(1, self.count_chunks() // max(1, most)), most]
        return self._sql.column(sql, values, as_binary=True)

    def for_documents(
        self, model: StoredModel, documents: Sequence[int], most: int
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for the first ``most`` chunks of each document, in the order of the ids."""
        dialect = self._sql.dialect
        return self._rows(
            f"SELECT k.id, k.document_id, e.vector FROM chunks k {dialect.first} z_embeddings e"
            " ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.document_id {dialect.among} AND k.seq < ? AND k.model_id IS NOT NULL"
            " ORDER BY k.document_id, k.seq",
            [model.id, dialect.array(documents), most],
        )

    def chunk_spans(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Chunk id → start_char, end_char and start_line of the chunk in its document's text."""
        rows = self._sql.run(
            f"SELECT id, start_char, end_char, start_line FROM chunks WHERE id {self._sql.among}",
            [self._sql.array(ids)],
        )
        return {chunk_id: (start, end, line) for chunk_id, start, end, line in rows}

    def version(self) -> tuple[int, int]:
        """
        Two counters that tell when a copy of the vectors is out of date.

        The first grows when existing vectors may have changed, the second when vectors were added
        or removed.
        """
        return shared.vector_version(self._sql)

    def require_engine(self) -> str:
        """
        The name and version of the library that compares vectors.

        Raises:
            VectorsUnavailableError: It cannot be loaded on this machine.
        """
        return str(self._engine.library(self._sql.connection))

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[int, int, bytes]]:
        return self._sql.run(sql, values, as_binary=True).fetchall()


def put_copies(sql: Sql, model: StoredModel, rows: Iterable[tuple[int, int, bytes]]) -> None:
    """Store copies of vectors that are searched: triples of chunk id, collection id and vector."""
    engine = sql.engine("vectors")
    if engine.has_copies(sql.connection, model.dimension):
        sql.many(
            "INSERT INTO z_vectors (chunk_id, model_id, collection_id, embedding)"
            " VALUES (?, ?, ?, ?) ON CONFLICT (chunk_id, model_id)"
            " DO UPDATE SET embedding = excluded.embedding",
            [
                (chunk, model.id, collection, engine.copied(vector))
                for chunk, collection, vector in rows
            ],
        )


def renumber_copy(sql: Sql, model_id: int, chunk_id: int, new_id: int) -> None:
    """Give the copy of a chunk's vector to another chunk."""
    if sql.engine("vectors").has_copies(sql.connection):
        sql.run(
            "UPDATE z_vectors SET chunk_id = ? WHERE chunk_id = ? AND model_id = ?",
            [new_id, chunk_id, model_id],
        )


def remove_copies(
    sql: Sql, model: StoredModel, condition: str = "true", values: Sequence[object] = ()
) -> None:
    """Remove the copies of a model's vectors, or some of them."""
    if sql.engine("vectors").has_copies(sql.connection):
        sql.run(f"DELETE FROM z_vectors WHERE model_id = ? AND {condition}", [model.id, *values])
