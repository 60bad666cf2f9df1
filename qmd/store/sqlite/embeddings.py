"""
Lists the chunks that wait for a vector, and stores the vectors.

``z_embeddings`` keeps each vector once, float16[dimension] of unit norm, keyed by model and
hash of the embedded text; it is an ordinary table, and a cache that outlives the chunks.
``chunks.model_id`` tells whose vector a chunk has in the index, NULL while it waits for one. A
chunk with ``next_hash`` waits for another vector than the one that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmd.store.embeddings import WAITING, ChunkText
from qmd.store.models import StoredModel
from qmd.store.sql import Sql, vector_state
from qmd.store.sqlite.chunk_texts import chunk_texts
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.models import SqliteModels
from qmd.store.sqlite.vectors import quantize


class SqliteEmbeddings:
    """`qmd.store.embeddings.Embeddings` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def _column(self, model: StoredModel) -> str:
        return SqliteModels(self._sql).chunk_column(model)

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
        *,
        outdated: bool = False,
    ) -> list[ChunkText]:
        condition = ""
        if collection_ids:
            condition = f" AND d.collection_id IN ({', '.join('?' * len(collection_ids))})"
        waits = WAITING[self._column(model)][outdated]
        return chunk_texts(
            self._connection,
            f" WHERE {waits} AND k.id > ?{condition} ORDER BY k.id LIMIT ?",
            [after, *collection_ids, limit],
        )

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        column = "model_id" if model is None else self._column(model)
        join = condition = ""
        if collection_ids:
            join = " JOIN documents d ON d.id = k.document_id"
            condition = f" AND d.collection_id IN ({', '.join('?' * len(collection_ids))})"
        count = 0
        for waits in WAITING[column]:
            row = self._connection.execute(
                f"SELECT count(*) FROM chunks k{join} WHERE {waits}{condition}",
                list(collection_ids),
            ).fetchone()
            count += int(row[0])
        return count

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        vectors: dict[bytes, bytes] = {}
        for digest in set(hashes):
            row = self._connection.execute(
                "SELECT vector FROM z_embeddings WHERE hash = ? AND model_id = ?",
                [digest, model.id],
            ).fetchone()
            if row is not None:
                vectors[digest] = row[0]
        return vectors


class SqliteEmbeddingsWriter(SqliteEmbeddings):
    """`qmd.store.embeddings.EmbeddingsWriter` in SQLite."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        column = self._column(model)
        condition, values = "1", list[object]()
        if collection_ids:
            marks = ", ".join("?" * len(collection_ids))
            condition = (
                f"document_id IN (SELECT id FROM documents WHERE collection_id IN ({marks}))"
            )
            values = list(collection_ids)
        hashes = f"SELECT hash FROM chunks WHERE {condition}"
        self._connection.execute(
            f"DELETE FROM z_embeddings WHERE model_id = ? AND hash IN ({hashes})",
            [model.id, *values],
        )
        self._connection.execute(
            f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL AND hash IN ({hashes})",
            values,
        )
        vector_state.advance(self._sql, remade=True)

    def put(
        self,
        model: StoredModel,
        chunks: Sequence[tuple[int, bytes]],
        vectors: dict[bytes, bytes],
    ) -> int:
        column = self._column(model)
        self._connection.executemany(
            "INSERT OR IGNORE INTO z_embeddings (model_id, hash, vector) VALUES (?, ?, ?)",
            [(model.id, digest, vector) for digest, vector in vectors.items()],
        )
        stored = 0
        for chunk_id, digest in chunks:
            row = self._connection.execute(
                "SELECT d.collection_id, k.next_hash IS NOT NULL FROM chunks k"
                " JOIN documents d ON d.id = k.document_id"
                " WHERE k.id = ? AND coalesce(k.next_hash, k.hash) = ?",
                [chunk_id, digest],
            ).fetchone()
            if row is None or digest not in vectors:
                continue
            if row[1] and column == "model_id":
                chunk_id = self._renumber(chunk_id)  # noqa: PLW2901
            self._connection.execute(
                "INSERT INTO z_vectors (chunk_id, model_id, collection_id, embedding)"
                " VALUES (?, ?, ?, ?) ON CONFLICT (chunk_id, model_id)"
                " DO UPDATE SET embedding = excluded.embedding",
                [chunk_id, model.id, row[0], quantize(vectors[digest])],
            )
            self._connection.execute(
                f"UPDATE chunks SET {column} = ? WHERE id = ?", [model.id, chunk_id]
            )
            stored += 1
        if stored and column == "model_id":
            vector_state.advance(self._sql)
        return stored

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
        new_id = self._connection.execute(
            f"INSERT INTO chunks ({columns}, hash) SELECT {columns}, next_hash FROM chunks"
            " WHERE id = ?",
            [chunk_id],
        ).lastrowid
        assert new_id is not None  # an INSERT has one
        # A vector of the model that is to follow is of the present text.
        self._connection.execute(
            "UPDATE z_vectors SET chunk_id = ? WHERE chunk_id = ? AND model_id IN"
            " (SELECT next_model_id FROM chunks WHERE id = ?)",
            [new_id, chunk_id, new_id],
        )
        self._connection.execute("DELETE FROM chunks WHERE id = ?", [chunk_id])
        return new_id
