"""What the database holds beside documents: models and collections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """
    An embedding model, as far as the index must know it.

    ``fingerprint`` changes when vectors would (weights, pooling, prefixes): vectors of
    different fingerprints never mix. Cosines at or below ``cosine_low`` score 0, at or
    above ``cosine_high`` 1, linear between (measured per model; see docs/models.md).
    """

    name: str
    fingerprint: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    cosine_low: float = 0.0
    cosine_high: float = 1.0


@dataclass(frozen=True, slots=True)
class Collection:
    """A directory, and which of its files are documents (``pattern``: globs, comma-separated)."""

    id: int
    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    documents: int
    last_updated: str | None  # ISO 8601 UTC, when a document last changed
    last_indexed: str | None  # ISO 8601 UTC, when the directory was last scanned to the end
