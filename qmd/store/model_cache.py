"""The cache of models' answers, so that a model is not asked the same twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

#: Kind of answer → how many of the latest answers are kept; each kind takes a few megabytes.
MAX_ANSWERS = {"expansion": 2000, "score": 30_000, "vector": 2000}
#: A longer answer is not kept.
MAX_ANSWER_BYTES = 16_384


class ModelCache(Protocol):
    """Reads answers of models; a key is the hash of the question."""

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """
        Key → answer, for the keys that have one.

        Args:
            kind: A key of `MAX_ANSWERS`.
            model: The fingerprint or name of the model.
        """
        ...

    def count(self) -> int:
        """How many answers are kept."""
        ...


class ModelCacheWriter(ModelCache, Protocol):
    """Keeps answers of models."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        """Store answers by key, and remove the oldest of the kind if there are too many."""
        ...
