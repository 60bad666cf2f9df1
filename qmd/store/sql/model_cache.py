"""The cache of models' answers, so that a model is not asked the same twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmd.store.sql import Sql
from qmd.system import clock

#: Kind of answer → how many of the latest answers are kept; each kind takes a few megabytes.
MAX_ANSWERS = {"expansion": 2000, "score": 30_000, "vector": 2000}
#: A longer answer is not kept.
MAX_ANSWER_BYTES = 16_384


class ModelCache:
    """Reads answers of models; a key is the hash of the question."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """
        Key → answer, for the keys that have one.

        Args:
            kind: A key of `MAX_ANSWERS`.
            model: The fingerprint or name of the model.
        """
        rows = self._sql.with_keys(
            "SELECT hash, value FROM z_model_cache WHERE hash {} AND kind = ? AND model = ?",
            keys,
            [kind, model],
        )
        return {key: bytes(value) for key, value in rows}

    def count(self) -> int:
        """How many answers are kept."""
        return self._sql.number("SELECT count(*) FROM z_model_cache")


class ModelCacheWriter(ModelCache):
    """Keeps answers of models."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        """Store answers by key, and remove the oldest of the kind if there are too many."""
        now = clock.now()
        kept = {key: value for key, value in values.items() if len(value) <= MAX_ANSWER_BYTES}
        # New rows also for old keys: the answers with the lowest ids are removed first.
        self._sql.many(
            "DELETE FROM z_model_cache WHERE hash = ? AND kind = ? AND model = ?",
            [(key, kind, model) for key in kept],
        )
        self._sql.many(
            "INSERT INTO z_model_cache (kind, model, hash, value, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [(kind, model, key, value, now) for key, value in kept.items()],
        )
        self._sql.run(
            "DELETE FROM z_model_cache WHERE kind = ? AND id <= (SELECT id FROM z_model_cache"
            " WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            [kind, kind, MAX_ANSWERS[kind]],
        )
