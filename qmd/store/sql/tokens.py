"""The token states of embedded texts, as codes that the store does not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from qmd.store.sql import Sql
from qmd.store.sql.embeddings import ChunkText, chunk_texts
from qmd.store.sql.models import Models, StoredModel


class StoredProjection(NamedTuple):
    """
    How the codes of a model's token states were made.

    Attributes:
        recipe: Names the projection and the form of the codes.
        code_bytes: The bytes of one token.
        data: The projection itself; empty if it is part of the program.
    """

    recipe: str
    code_bytes: int
    data: bytes


class Tokens:
    """Reads the codes of token states: of each embedded text one row, if it has been made."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def projection(self, model: StoredModel) -> StoredProjection | None:
        """How the codes of a model were made; None if none were made yet."""
        projections = self._sql.all(
            StoredProjection,
            "SELECT recipe, code_bytes, projection FROM z_token_projections WHERE model_id = ?",
            [model.id],
        )
        if projections and projections[0].code_bytes < 1:
            raise ValueError("codes of no bytes")  # `Store` looks for damage then
        return projections[0] if projections else None

    def of_chunks(
        self, model: StoredModel, chunk_ids: Sequence[int], recipe: str
    ) -> dict[int, bytes]:
        """
        Chunk id → codes of the text of the chunk.

        A chunk is left out if its codes are missing, were made by another recipe, or have an
        impossible length, which damage leaves.
        """
        projection = self.projection(model)
        if projection is None or projection.recipe != recipe:
            return {}
        dialect = self._sql.dialect
        rows = self._sql.run(
            "SELECT k.id, t.codes FROM chunks k"
            f" {dialect.first} z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" {dialect.first} z_token_states t ON t.embedding_id = e.id"
            f" WHERE k.id {dialect.among}",
            [model.id, dialect.array(chunk_ids)],
            as_binary=True,
        )
        return {
            chunk_id: codes
            for chunk_id, codes in rows
            if isinstance(codes, bytes) and len(codes) % projection.code_bytes == 0
        }

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash of a text → codes, as `Embeddings.cached` has its vectors."""
        rows = self._sql.with_keys(
            "SELECT e.hash, t.codes FROM z_embeddings e"
            " JOIN z_token_states t ON t.embedding_id = e.id WHERE e.hash {} AND e.model_id = ?",
            hashes,
            [model.id],
        )
        return dict(rows)

    def texts(self, chunk_ids: Sequence[int]) -> list[ChunkText]:
        """These chunks with their texts, sorted by id; those that do not exist are left out."""
        dialect = self._sql.dialect
        return chunk_texts(
            self._sql, f" WHERE k.id {dialect.among} ORDER BY k.id", [dialect.array(chunk_ids)]
        )

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[ChunkText]:
        """
        Chunks that have a vector of this model but no token states, sorted by id.

        Args:
            limit: Return at most this many.
            collection_ids: Only chunks of these collections; empty for all.
            after: Only chunks with a greater id.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        clauses, values = self._waiting(model, collection_ids)
        return chunk_texts(
            self._sql,
            f"{clauses} AND k.id > ? ORDER BY k.id LIMIT ?",
            [*values, after, limit],
        )

    def count_waiting(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> int:
        """How many chunks `waiting` has; a scan of all chunks. Raises as `waiting`."""
        clauses, values = self._waiting(model, collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if collection_ids else ""
        return self._sql.number(f"SELECT count(*) FROM chunks k{join}{clauses}", values)

    def _waiting(
        self, model: StoredModel, collection_ids: Sequence[int]
    ) -> tuple[str, list[object]]:
        """Clauses for chunks ``k`` (of documents ``d``) that wait, and the values to bind."""
        column = Models(self._sql).chunk_column(model)
        clauses = (
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.{column} = ? AND k.next_hash IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM z_token_states t WHERE t.embedding_id = e.id)"
        )
        values: list[object] = [model.id, model.id]
        if collection_ids:
            clauses += f" AND d.collection_id {self._sql.dialect.among}"
            values.append(self._sql.dialect.array(collection_ids))
        return clauses, values

    def count(self) -> int:
        """How many chunks have token states of the active model; a scan of all chunks."""
        return self._sql.number(
            "SELECT count(*) FROM chunks k JOIN z_models m ON m.id = k.model_id AND m.active"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
            " JOIN z_token_states t ON t.embedding_id = e.id"
        )

    def sample(self, most: int) -> list[ChunkText]:
        """At most so many chunks, with a vector or without, spread evenly over the index."""
        ids = [row[0] for row in self._sql.run("SELECT id FROM chunks ORDER BY id")]
        step = max(1.0, len(ids) / most)
        chosen = [ids[int(place * step)] for place in range(min(most, len(ids)))]
        return self.texts(chosen)


class TokensWriter(Tokens):
    """Stores token states."""

    def begin(self, model: StoredModel, projection: StoredProjection) -> None:
        """Record how codes will be made. Codes that were made otherwise are dropped."""
        if self.projection(model) == projection:
            return
        self.forget(model)
        self._sql.run(
            "INSERT INTO z_token_projections (model_id, recipe, code_bytes, projection)"
            " VALUES (?, ?, ?, ?) ON CONFLICT (model_id) DO UPDATE SET recipe = excluded.recipe,"
            " code_bytes = excluded.code_bytes, projection = excluded.projection",
            [model.id, *projection],
        )

    def forget(self, model: StoredModel) -> None:
        """Drop all codes of a model."""
        self._sql.run(
            "DELETE FROM z_token_states"
            " WHERE embedding_id IN (SELECT id FROM z_embeddings WHERE model_id = ?)",
            [model.id],
        )

    def put(self, model: StoredModel, codes: Mapping[bytes, bytes]) -> int:
        """
        Keep codes by the hash of their text, for texts that have a vector of this model.

        Returns:
            How many were stored.
        """
        ids = self._sql.with_keys(
            "SELECT hash, id FROM z_embeddings WHERE hash {} AND model_id = ?", codes, [model.id]
        )
        return self._sql.many(
            "INSERT INTO z_token_states (embedding_id, codes) VALUES (?, ?)"
            " ON CONFLICT (embedding_id) DO UPDATE SET codes = excluded.codes",
            [(embedding_id, codes[digest]) for digest, embedding_id in ids],
        )
