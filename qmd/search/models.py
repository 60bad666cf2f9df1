"""The models that one search may use."""

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
    The models for one search; None where there is none.

    Attributes:
        embedder: Opens the embedding model; called when a text has to be embedded. Raises
            ModelMissingError.
        timeout_s: Seconds that one call of the expander or the reranker may take.
        cache: The vectors that stay in memory between searches.
    """

    embedder: Callable[[], Embedder] | None = None
    expander: Expander | None = None
    reranker: Reranker | None = None
    timeout_s: float = 5.0
    cache: VectorCache | None = None
