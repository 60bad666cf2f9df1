"""Keeps the answers of models, so that no question is asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmd.store.model_cache import MAX_ANSWER_BYTES, MAX_ANSWERS
from qmd.store.sqlite.library import Connection
from qmd.system import clock


class SqliteModelCache:
    """`qmd.store.model_cache.ModelCache` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        answers: dict[bytes, bytes] = {}
        for key in set(keys):
            row = self._connection.execute(
                "SELECT value FROM z_model_cache WHERE hash = ? AND kind = ? AND model = ?",
                [key, kind, model],
            ).fetchone()
            if row is not None:
                answers[key] = bytes(row[0])
        return answers

    def count(self) -> int:
        row = self._connection.execute("SELECT count(*) FROM z_model_cache").fetchone()
        return int(row[0])


class SqliteModelCacheWriter(SqliteModelCache):
    """`qmd.store.model_cache.ModelCacheWriter` in SQLite."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        now = clock.now()
        self._connection.executemany(
            "INSERT OR REPLACE INTO z_model_cache (kind, model, hash, value, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (kind, model, key, value, now)
                for key, value in values.items()
                if len(value) <= MAX_ANSWER_BYTES
            ],
        )
        self._connection.execute(
            "DELETE FROM z_model_cache WHERE kind = ? AND id <= (SELECT id FROM z_model_cache"
            " WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            [kind, kind, MAX_ANSWERS[kind]],
        )
