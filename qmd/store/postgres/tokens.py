"""
Keeps the codes of token states beside the vectors of ``z_embeddings``.

A row of ``z_token_states`` belongs to a row of ``z_embeddings``, so it comes and goes with the
vector: by the hash of the text, whatever becomes of the chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qmd.store.embeddings import ChunkText
from qmd.store.models import StoredModel
from qmd.store.postgres.chunk_texts import chunk_texts
from qmd.store.postgres.library import Connection
from qmd.store.postgres.models import PostgresModels
from qmd.store.postgres.rows import one
from qmd.store.sql import Sql
from qmd.store.tokens import StoredProjection


class PostgresTokens:
    """`qmd.store.tokens.Tokens` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def projection(self, model: StoredModel) -> StoredProjection | None:
        row = self._connection.execute(
            "SELECT recipe, code_bytes, projection FROM z_token_projections WHERE model_id = %s",
            [model.id],
        ).fetchone()
        return None if row is None else StoredProjection(*row)

    def of_chunks(
        self, model: StoredModel, chunk_ids: Sequence[int], recipe: str
    ) -> dict[int, bytes]:
        projection = self.projection(model)
        if projection is None or projection.recipe != recipe:
            return {}
        rows = self._connection.execute(
            "SELECT k.id, t.codes FROM chunks k"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = %s"
            " JOIN z_token_states t ON t.embedding_id = e.id"
            " WHERE k.id = ANY(%s)",
            [model.id, list(chunk_ids)],
            binary=True,
        )
        return {
            chunk_id: codes for chunk_id, codes in rows if len(codes) % projection.code_bytes == 0
        }

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        rows = self._connection.execute(
            "SELECT e.hash, t.codes FROM z_embeddings e"
            " JOIN z_token_states t ON t.embedding_id = e.id"
            " WHERE e.hash = ANY(%s) AND e.model_id = %s",
            [list(hashes), model.id],
        )
        return dict(rows.fetchall())

    def texts(self, chunk_ids: Sequence[int]) -> list[ChunkText]:
        return chunk_texts(
            self._connection, " WHERE k.id = ANY(%s) ORDER BY k.id", [list(chunk_ids)]
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
            f"{clauses} AND k.id > %s ORDER BY k.id LIMIT %s",
            [*values, after, limit],
        )

    def count_waiting(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> int:
        clauses, values = self._waiting(model, collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if collection_ids else ""
        sql = f"SELECT count(*) FROM chunks k{join}{clauses}"
        return int(one(self._connection, sql, values)[0])

    def _waiting(
        self, model: StoredModel, collection_ids: Sequence[int]
    ) -> tuple[str, list[object]]:
        """Clauses for chunks ``k`` (of documents ``d``) that wait, and the values to bind."""
        column = PostgresModels(self._sql).chunk_column(model)
        clauses = (
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = %s"
            f" WHERE k.{column} = %s AND k.next_hash IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM z_token_states t WHERE t.embedding_id = e.id)"
        )
        values: list[object] = [model.id, model.id]
        if collection_ids:
            clauses += " AND d.collection_id = ANY(%s)"
            values.append(list(collection_ids))
        return clauses, values

    def count(self) -> int:
        sql = (
            "SELECT count(*) FROM chunks k JOIN z_models m ON m.id = k.model_id AND m.active"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
            " JOIN z_token_states t ON t.embedding_id = e.id"
        )
        return int(one(self._connection, sql)[0])

    def sample(self, most: int) -> list[ChunkText]:
        ids = [row[0] for row in self._connection.execute("SELECT id FROM chunks ORDER BY id")]
        step = max(1.0, len(ids) / most)
        chosen = [ids[int(place * step)] for place in range(min(most, len(ids)))]
        return self.texts(chosen)


class PostgresTokensWriter(PostgresTokens):
    """`qmd.store.tokens.TokensWriter` in PostgreSQL."""

    def begin(self, model: StoredModel, projection: StoredProjection) -> None:
        if self.projection(model) == projection:
            return
        self.forget(model)
        self._connection.execute(
            "INSERT INTO z_token_projections (model_id, recipe, code_bytes, projection)"
            " VALUES (%s, %s, %s, %s) ON CONFLICT (model_id) DO UPDATE"
            " SET recipe = excluded.recipe, code_bytes = excluded.code_bytes,"
            " projection = excluded.projection",
            [model.id, *projection],
        )

    def forget(self, model: StoredModel) -> None:
        self._connection.execute(
            "DELETE FROM z_token_states"
            " WHERE embedding_id IN (SELECT id FROM z_embeddings WHERE model_id = %s)",
            [model.id],
        )

    def put(self, model: StoredModel, codes: Mapping[bytes, bytes]) -> int:
        return self._connection.execute(
            "INSERT INTO z_token_states (embedding_id, codes) SELECT e.id, n.codes"
            " FROM unnest(%b::bytea[], %b::bytea[]) AS n (hash, codes)"
            " JOIN z_embeddings e ON e.hash = n.hash AND e.model_id = %s"
            " ON CONFLICT (embedding_id) DO UPDATE SET codes = excluded.codes",
            [list(codes), list(codes.values()), model.id],
        ).rowcount
