"""Embedding models and collections."""

from __future__ import annotations

from typing import Annotated

from qmd.records import dataclass
from qmd.values.facts import Describe, NotSent, OmitDefault, Range


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """
    The properties of an embedding model that the index depends on.

    Attributes:
        fingerprint: Differs between models whose vectors differ (weights, pooling, prefixes).
            Vectors of different fingerprints are never compared.
        max_tokens: A longer text is split before it is embedded.
        cosine_low, cosine_high: A cosine at or below the first scores 0, at or above the second 1,
            in between linearly. Measured for each model; see docs/models.md.
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
    An indexed directory and the rules that say which of its files are documents.

    Times are in UTC.

    Attributes:
        path: The absolute path of the directory.
        pattern: Globs of the files that are documents, separated by commas.
        ignore: Patterns of files to leave out, as in a .gitignore.
    """

    id: Annotated[int, NotSent()]
    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    documents: Annotated[int, Range(0)]
    last_updated: Annotated[str | None, Describe("When a document last changed, ISO 8601")]
    last_indexed: Annotated[str | None, Describe("When it was last scanned to the end, ISO 8601")]
    included: Annotated[bool, Describe("Whether searches that name no collection look in it")] = (
        True
    )
    owner: Annotated[str, OmitDefault(), Describe("Whose folder it is, if it was pushed")] = ""
