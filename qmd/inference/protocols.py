"""
What search and ingest need of models: embedders, expanders and rerankers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ExpansionKind = Literal["lex", "vec", "hyde"]


class Embedder(Protocol):
    """
    Turns texts into unit vectors. Thread-safe; the weights are read at the first text.

    Any string is accepted: NUL and lone surrogates are replaced, blank text has a vector
    too. A text longer than ``spec.max_tokens`` is never cut: it is split, and the vectors of the
    parts are averaged by length. A text's vector does not depend on its neighbours.
    """

    @property
    def spec(self) -> ModelSpec: ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32[len(texts), dimension]. Raises InferenceError."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, float32[dimension]. Raises InferenceError."""
        ...


@dataclass(frozen=True, slots=True)
class Expansion:
    """
    Another way to ask a question.

    Full text is searched for ``lex``; the vectors for ``vec``, and for ``hyde``, an answer that
    the model has invented.
    """

    kind: ExpansionKind
    text: str


class Expander(Protocol):
    """Writes other ways to ask a question."""

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        """At most ``limit`` expansions, best first. Raises InferenceError."""
        ...


class Reranker(Protocol):
    """Scores passages by how well they answer a question."""

    @property
    def name(self) -> str: ...

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """How well each passage answers the query, 0..1, in their order. Raises InferenceError."""
        ...
