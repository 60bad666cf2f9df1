"""Keeps the answers of models, so that no question is asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmd.store.model_cache import MAX_ANSWER_BYTES, MAX_ANSWERS
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import many, one
from qmd.system import clock


class PostgresModelCache:
    """`qmd.store.model_cache.ModelCache` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return dict(
            self._connection.execute(
                "SELECT hash, value FROM z_model_cache"
                " WHERE hash = ANY(%s) AND kind = %s AND model = %s",
                [list(set(keys)), kind, model],
            ).fetchall()
        )

    def count(self) -> int:
        return int(one(self._connection, "SELECT count(*) FROM z_model_cache")[0])


class PostgresModelCacheWriter(PostgresModelCache):
    """`qmd.store.model_cache.ModelCacheWriter` in PostgreSQL."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        now = clock.now()
        many(
            self._connection,
            "INSERT INTO z_model_cache (kind, model, hash, value, created_at)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (hash, kind, model) DO UPDATE"
            # The new id, too: the answers with the lowest ids are removed first.
            " SET id = excluded.id, value = excluded.value, created_at = excluded.created_at",
            [
                (kind, model, key, value, now)
                for key, value in values.items()
                if len(value) <= MAX_ANSWER_BYTES
            ],
        )
        self._connection.execute(
            "DELETE FROM z_model_cache WHERE kind = %s AND id <= (SELECT id FROM z_model_cache"
            " WHERE kind = %s ORDER BY id DESC LIMIT 1 OFFSET %s)",
            [kind, kind, MAX_ANSWERS[kind]],
        )
