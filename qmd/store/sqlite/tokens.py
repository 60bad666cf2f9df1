"""
Keeps the codes of token states beside the vectors of ``z_embeddings``.

A row of ``z_token_states`` belongs to a row of ``z_embeddings``, so it comes and goes with the
vector: by the hash of the text, whatever becomes of the chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from qmd.store.embeddings import ChunkText
from qmd.store.models import StoredModel
from qmd.store.sql import Sql
from qmd.store.sqlite.chunk_texts import chunk_texts
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.models import SqliteModels
from qmd.store.sqlite.rows import require_types
from qmd.store.tokens import StoredProjection


class SqliteTokens:
    """`qmd.store.tokens.Tokens` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def projection(self, model: StoredModel) -> StoredProjection | None:
        row = self._connection.execute(
            "SELECT recipe, code_bytes, projection FROM z_token_projections WHERE model_id = ?",
            [model.id],
        ).fetchone()
        if row is None:
            return None
        require_types(row, str, int, bytes)
        projection = StoredProjection(*row)
        if projection.code_bytes < 1:
            raise ValueError("codes of no bytes")  # `Store` looks for damage then
        return projection

    def of_chunks(
        self, model: StoredModel, chunk_ids: Sequence[int], recipe: str
    ) -> dict[int, bytes]:
        projection = self.projection(model)
        if projection is None or projection.recipe != recipe:
            return {}
        rows = self._connection.execute(
            "SELECT k.id, t.codes FROM json_each(?) j"
            " CROSS JOIN chunks k ON k.id = j.value"
            " CROSS JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            " CROSS JOIN z_token_states t ON t.embedding_id = e.id",
            [json.dumps(list(chunk_ids)), model.id],
        )
        return {
            chunk_id: codes
            for chunk_id, codes in rows
            if isinstance(codes, bytes) and len(codes) % projection.code_bytes == 0
        }

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        codes: dict[bytes, bytes] = {}
        for digest in set(hashes):
            row = self._connection.execute(
                "SELECT t.codes FROM z_embeddings e JOIN z_token_states t ON t.embedding_id = e.id"
                " WHERE e.hash = ? AND e.model_id = ?",
                [digest, model.id],
            ).fetchone()
            if row is not None:
                codes[digest] = row[0]
        return codes

    def texts(self, chunk_ids: Sequence[int]) -> list[ChunkText]:
        return chunk_texts(
            self._connection,
            " WHERE k.id IN (SELECT value FROM json_each(?)) ORDER BY k.id",
            [json.dumps(list(chunk_ids))],
        )

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[ChunkText]:
        clauses, values = self._waiting(model, collection_ids)
        return chunk_texts(
            self._connection,
            f"{clauses} AND k.id > ? ORDER BY k.id LIMIT ?",
            [*values, after, limit],
        )

    def count_waiting(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> int:
        clauses, values = self._waiting(model, collection_ids)
        row = self._connection.execute(
            "SELECT count(*) FROM chunks k"
            + (" JOIN documents d ON d.id = k.document_id" if collection_ids else "")
            + clauses,
            values,
        ).fetchone()
        return int(row[0])

    def _waiting(
        self, model: StoredModel, collection_ids: Sequence[int]
    ) -> tuple[str, list[object]]:
        """Clauses for chunks ``k`` (of documents ``d``) that wait, and the values to bind."""
        column = SqliteModels(self._sql).chunk_column(model)
        clauses = (
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.{column} = ? AND k.next_hash IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM z_token_states t WHERE t.embedding_id = e.id)"
        )
        if collection_ids:
            clauses += f" AND d.collection_id IN ({', '.join('?' * len(collection_ids))})"
        return clauses, [model.id, model.id, *collection_ids]

    def count(self) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM chunks k JOIN z_models m ON m.id = k.model_id AND m.active"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
            " JOIN z_token_states t ON t.embedding_id = e.id"
        ).fetchone()
        return int(row[0])

    def sample(self, most: int) -> list[ChunkText]:
        ids = [row[0] for row in self._connection.execute("SELECT id FROM chunks ORDER BY id")]
        step = max(1.0, len(ids) / most)
        chosen = [ids[int(place * step)] for place in range(min(most, len(ids)))]
        return self.texts(chosen)


class SqliteTokensWriter(SqliteTokens):
    """`qmd.store.tokens.TokensWriter` in SQLite."""

    def begin(self, model: StoredModel, projection: StoredProjection) -> None:
        if self.projection(model) == projection:
            return
        self.forget(model)
        self._connection.execute(
            "INSERT OR REPLACE INTO z_token_projections (model_id, recipe, code_bytes, projection)"
            " VALUES (?, ?, ?, ?)",
            [model.id, *projection],
        )

    def forget(self, model: StoredModel) -> None:
        self._connection.execute(
            "DELETE FROM z_token_states"
            " WHERE embedding_id IN (SELECT id FROM z_embeddings WHERE model_id = ?)",
            [model.id],
        )

    def put(self, model: StoredModel, codes: Mapping[bytes, bytes]) -> int:
        return self._connection.executemany(
            "INSERT OR REPLACE INTO z_token_states (embedding_id, codes)"
            " SELECT id, ? FROM z_embeddings WHERE hash = ? AND model_id = ?",
            [(code, digest, model.id) for digest, code in codes.items()],
        ).rowcount
