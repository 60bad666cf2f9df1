"""What models answered, so that the same question is not asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

#: So many answers of a kind are kept, the latest: a few megabytes of each.
MAX_ANSWERS = {"expansion": 2000, "score": 30_000, "vector": 2000}
#: A longer answer is not kept.
MAX_ANSWER_BYTES = 16_384


class ModelCache(Protocol):
    """Reads answers of models; a key is the hash of what was asked."""

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """
        Key → answer, for the keys that have one.

        ``kind``: one of `MAX_ANSWERS`; ``model``: its fingerprint or name.
        """
        ...

    def count(self) -> int:
        """How many answers are kept."""
        ...


class ModelCacheWriter(ModelCache, Protocol):
    """Keeps answers of models."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        """Remember answers, and forget the oldest of their kind where there are too many."""
        ...
