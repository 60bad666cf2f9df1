"""
What search and ingest ask of models; whoever answers is decided elsewhere.
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
    Texts to unit vectors. Thread-safe; the weights are read at the first text.

    Any string is accepted: NUL and lone surrogates are replaced, blank text has a vector
    too. A text longer than ``spec.max_tokens`` is embedded in parts whose vectors are
    averaged by length, never cut. A text's vector does not depend on its neighbours.
    """

    @property
    def spec(self) -> ModelSpec: ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimension). Raises InferenceError."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, shape (dimension,). Raises InferenceError."""
        ...


@dataclass(frozen=True, slots=True)
class Expansion:
    """
    Another way to ask the same.

    ``lex`` goes to full text, ``vec`` and ``hyde`` (a made-up answer) to the vectors.
    """

    kind: ExpansionKind
    text: str


class Expander(Protocol):
    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        """At most ``limit`` expansions, best first. Raises InferenceError."""
        ...


class Reranker(Protocol):
    @property
    def name(self) -> str: ...

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """How well each passage answers the query, 0..1, in order. Raises InferenceError."""
        ...
