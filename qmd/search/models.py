"""The models that take part in a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.search.meaning.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class SearchModels:
    """
    The models for one search; each is optional.

    Attributes:
        embedder: Opens the embedding model at the first need; raises ModelMissingError.
        timeout_s: For one call of the expander or the reranker.
        cache: The vectors that are kept in memory between searches.
    """

    embedder: Callable[[], Embedder] | None = None
    expander: Expander | None = None
    reranker: Reranker | None = None
    timeout_s: float = 5.0
    cache: VectorCache | None = None
