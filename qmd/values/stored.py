"""What the database holds beside documents: models and collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.values.facts import Describe, NotSent, Range


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
    """
    A directory, and which of its files are documents.

    ``pattern`` is globs separated by commas. Times are in UTC.
    """

    id: Annotated[int, NotSent()]
    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    documents: Annotated[int, Range(0)]
    last_updated: Annotated[str | None, Describe("When a document last changed, ISO 8601")]
    last_indexed: Annotated[str | None, Describe("When it was last scanned to the end, ISO 8601")]
