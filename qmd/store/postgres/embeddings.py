"""
Lists the chunks that wait for a vector, and stores the vectors.

``z_embeddings`` keeps each vector once, float16[dimension] of unit norm, keyed by model and
hash of the embedded text; it is a cache that outlives the chunks. ``chunks.model_id`` tells whose
vector a chunk has in the index, NULL while it waits for one. A chunk with ``next_hash`` waits for
another vector than the one that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmd.store.embeddings import WAITING, ChunkText
from qmd.store.models import StoredModel
from qmd.store.postgres import pgvector
from qmd.store.postgres.chunk_texts import chunk_texts
from qmd.store.postgres.library import Connection
from qmd.store.postgres.models import PostgresModels
from qmd.store.postgres.rows import many, one
from qmd.store.sql import Sql, vector_state


class PostgresEmbeddings:
    """`qmd.store.embeddings.Embeddings` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def _column(self, model: StoredModel) -> str:
        return PostgresModels(self._sql).chunk_column(model)

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
        *,
        outdated: bool = False,
    ) -> list[ChunkText]:
        condition, values = _of_collections(collection_ids)
        waits = WAITING[self._column(model)][outdated]
        return chunk_texts(
            self._connection,
            f" WHERE {waits} AND k.id > %s{condition} ORDER BY k.id LIMIT %s",
            [after, *values, limit],
        )

    def waiting_hashes(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
        *,
        outdated: bool = False,
    ) -> list[tuple[int, bytes]]:
        """Ids and text hashes of the first chunks behind an id that wait, as `waiting`."""
        condition, values = _of_collections(collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if condition else ""
        waits = WAITING[self._column(model)][outdated]
        return self._connection.execute(
            f"SELECT k.id, coalesce(k.next_hash, k.hash) FROM chunks k{join}"
            f" WHERE {waits} AND k.id > %s{condition} ORDER BY k.id LIMIT %s",
            [after, *values, limit],
        ).fetchall()

    def waiting_among(self, model: StoredModel, ids: Sequence[int]) -> list[ChunkText]:
        """Those of these chunks that wait for a vector of this model, sorted by id."""
        waits = " OR ".join(f"({each})" for each in WAITING[self._column(model)])
        return chunk_texts(
            self._connection, f" WHERE k.id = ANY(%s) AND ({waits}) ORDER BY k.id", [list(ids)]
        )

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        column = "model_id" if model is None else self._column(model)
        condition, values = _of_collections(collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if condition else ""
        return sum(
            int(
                one(
                    self._connection,
                    f"SELECT count(*) FROM chunks k{join} WHERE {waits}{condition}",
                    values,
                )[0]
            )
            for waits in WAITING[column]
        )

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        return dict(
            self._connection.execute(
                "SELECT hash, vector FROM z_embeddings WHERE hash = ANY(%s) AND model_id = %s",
                [list(set(hashes)), model.id],
                binary=True,
            ).fetchall()
        )


class PostgresEmbeddingsWriter(PostgresEmbeddings):
    """`qmd.store.embeddings.EmbeddingsWriter` in PostgreSQL."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        column = self._column(model)
        condition, values = "", list[object]()
        if collection_ids:
            condition, values = _of_collections(collection_ids)
            condition = (
                " AND hash IN (SELECT k.hash FROM chunks k JOIN documents d"
                f" ON d.id = k.document_id WHERE true{condition})"
            )
        pgvector.remove(
            self._connection,
            model,
            f"chunk_id IN (SELECT id FROM chunks WHERE true{condition})",
            values,
        )
        self._connection.execute(
            "DELETE FROM z_embeddings WHERE model_id = %s"
            + (condition or " AND hash IN (SELECT hash FROM chunks)"),
            [model.id, *values],
        )
        self._connection.execute(
            f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL{condition}", values
        )
        vector_state.advance(self._sql, remade=True)

    def put(
        self,
        model: StoredModel,
        chunks: Sequence[tuple[int, bytes]],
        vectors: dict[bytes, bytes],
    ) -> int:
        column = self._column(model)
        many(
            self._connection,
            "INSERT INTO z_embeddings (model_id, hash, vector) VALUES (%s, %s, %b)"
            " ON CONFLICT (hash, model_id) DO NOTHING",
            [(model.id, digest, vector) for digest, vector in vectors.items()],
        )
        rows = self._connection.execute(
            "SELECT k.id, coalesce(k.next_hash, k.hash), d.collection_id, k.next_hash IS NOT NULL"
            " FROM chunks k JOIN documents d ON d.id = k.document_id WHERE k.id = ANY(%s)",
            [[chunk_id for chunk_id, _ in chunks]],
        )
        places = {(row[0], row[1]): row for row in rows}
        stored: list[tuple[int, bytes, int]] = []
        for chunk in chunks:
            if chunk not in places or chunk[1] not in vectors:
                continue
            chunk_id, digest, collection_id, is_outdated = places[chunk]
            if is_outdated and column == "model_id":
                chunk_id = self._renumber(chunk_id)
            stored.append((chunk_id, digest, collection_id))
        if not stored:
            return 0
        pgvector.put(
            self._connection,
            model,
            [(chunk_id, place, vectors[digest]) for chunk_id, digest, place in stored],
        )
        self._connection.execute(
            f"UPDATE chunks SET {column} = %s WHERE id = ANY(%s)",
            [model.id, [chunk_id for chunk_id, *_ in stored]],
        )
        if column == "model_id":
            vector_state.advance(self._sql)
        return len(stored)

    def _renumber(self, chunk_id: int) -> int:
        """
        Give a chunk whose vector is replaced another id: processes hold vectors by it.

        Returns:
            The new id; the chunk has the hash of its present text, and waits.
        """
        columns = (
            "document_id, seq, start_char, end_char, start_byte, end_byte, start_line, end_line,"
            " heading_path, next_model_id"
        )
        new_id, next_model_id = one(
            self._connection,
            f"INSERT INTO chunks ({columns}, hash) SELECT {columns}, next_hash FROM chunks"
            " WHERE id = %s RETURNING id, next_model_id",
            [chunk_id],
        )
        if next_model_id is not None:  # a vector of that model is of the present text
            pgvector.renumber(self._connection, next_model_id, chunk_id, new_id)
        self._connection.execute("DELETE FROM chunks WHERE id = %s", [chunk_id])
        return int(new_id)


def _of_collections(collection_ids: Sequence[int]) -> tuple[str, list[object]]:
    """A condition on ``documents d``, empty for all collections, and the values to bind."""
    if not collection_ids:
        return "", []
    return " AND d.collection_id = ANY(%s)", [list(collection_ids)]
