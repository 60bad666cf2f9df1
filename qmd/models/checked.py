"""
Checks the vectors, scores and expansions that models return, before they are used.

A vector of NaN would be near to every query. A vector of another length could not be read from the
database.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from qmd.errors import InferenceError, QmdError
from qmd.inference.protocols import (
    EmbeddedTexts,
    Embedder,
    EmbedderWrapper,
    Expansion,
    ExpansionKind,
    Role,
    TokenStates,
    no_states,
)
from qmd.values import ModelSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

#: A vector is scaled to norm 1 only if its norm differs from 1 by more than this rounding error.
TOLERANCE = 1e-3

_HINT = (
    "No vector of this batch was stored. Mend the model, or use another:"
    " 'qmd models list', then 'qmd models use NAME'."
)


class CheckedEmbedder(EmbedderWrapper):
    """
    Wraps an `Embedder` that a caller has written, and checks the vectors that it returns.

    Vectors are scaled to unit norm. If the inner embedder fails, or returns something that is not a
    vector, an InferenceError names the model. A QmdError is passed on unchanged.
    """

    @property
    def gives_token_states(self) -> bool:
        with self._naming_errors():
            return super().gives_token_states

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        with self._naming_errors():
            returned = super().embed(texts, role, with_tokens=with_tokens)
            states = tuple(returned.states)
        if with_tokens and len(states) != len(texts):
            raise self._unusable(f"token states of {len(states)} texts for {len(texts)}")
        vectors = self._checked(returned.vectors, len(texts))
        return EmbeddedTexts(vectors, tuple(map(self._checked_states, states)))

    def _checked_states(self, returned: TokenStates) -> TokenStates:
        """Finite, rounded to float16, float32[t, dimension]. Raises InferenceError."""
        try:
            ids, states = np.asarray(returned.ids), np.asarray(returned.states)
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unusable("what are no token states") from error
        if not ids.size and not states.size:
            return no_states(self.spec.dimension)
        if ids.dtype.kind not in "iu" or states.dtype.kind not in "fiu":
            raise self._unusable("token states that are no numbers")
        if ids.ndim != 1 or states.shape != (len(ids), self.spec.dimension):
            raise self._unusable(f"token states of shape {states.shape} for {ids.shape} tokens")
        with np.errstate(over="ignore"):  # what is infinite now is refused below
            states = states.astype(np.float16).astype(np.float32)
        ids = ids.astype(np.int32)
        if (np.diff(ids) <= 0).any() or not np.isfinite(states).all():
            raise self._unusable("token states that are not finite, or not in the order of the ids")
        return TokenStates(ids, states)

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Log the text of an error, but keep it out of the reply, which clients may see."""
        try:
            yield
        except QmdError:
            raise
        except Exception as error:  # the caller's code may raise anything
            _log.error("%s failed", self.spec.name, exc_info=error)
            raise InferenceError(
                f"The embedding model {self.spec.name} failed: {type(error).__name__}.", hint=_HINT
            ) from error

    def _checked(self, returned: Any, count: int) -> NDArray[np.float32]:
        """float32[count, dimension], unit norm. Raises InferenceError."""
        spec = self.spec
        try:
            rows = np.asarray(returned)
        except (TypeError, ValueError) as error:  # rows of different lengths
            raise self._unusable("what is no list of vectors") from error
        if rows.size == 0 and count == 0:
            return np.empty((0, spec.dimension), np.float32)
        if rows.dtype.kind not in "fiu":
            raise self._unusable("what is no list of vectors of numbers")
        if rows.ndim != 2 or len(rows) != count:
            raise self._unusable(f"an array of shape {rows.shape} for {count} texts")
        if rows.shape[1] != spec.dimension:
            raise self._unusable(f"vectors of {rows.shape[1]} numbers instead of {spec.dimension}")
        with np.errstate(over="ignore"):
            vectors: NDArray[np.float32] = rows.astype(np.float32)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all():  # a NaN or infinite number makes the norm so
            raise self._unusable("a vector that is not finite")
        if not norms.all():
            raise self._unusable("a vector without a direction (all zeros)")
        if (abs(norms - 1) <= TOLERANCE).all():
            return vectors
        unit: NDArray[np.float32] = vectors / norms
        return unit

    def _unusable(self, what: str) -> InferenceError:
        return InferenceError(f"The embedding model {self.spec.name} gave {what}.", hint=_HINT)


def checked_scores(scores: Sequence[float | None], count: int) -> list[float | None]:
    """
    The scores as floats; None for passages that have none.

    Raises:
        InferenceError: They are not ``count``, one of them is no number from 0 to 1, or there is
            none at all.
    """
    try:
        values = [None if score is None else float(score) for score in scores]
    except (TypeError, ValueError, OverflowError) as error:
        raise InferenceError("A score is no number.") from error
    if len(values) != count:
        raise InferenceError(f"{len(values)} scores came for {count} passages.")
    numbers = [value for value in values if value is not None]
    if not all(0 <= value <= 1 for value in numbers):  # false for NaN as well
        raise InferenceError("A score does not lie between 0 and 1.")
    if count and not numbers:
        raise InferenceError("No passage has a score.")
    return values


def checked_expansions(returned: Sequence[Expansion], limit: int) -> list[Expansion]:
    """
    The first ``limit`` expansions that are not blank.

    Raises:
        InferenceError: ``returned`` is not a sequence of expansions.
    """
    try:
        expansions = [expansion for expansion in returned if expansion.text.strip()]
        wrong = any(expansion.kind not in get_args(ExpansionKind) for expansion in expansions)
    except (AttributeError, TypeError) as error:
        raise InferenceError("The answer is no list of expansions.") from error
    if wrong:
        raise InferenceError("An expansion is neither lex, vec nor hyde.")
    return expansions[:limit]


class PluginEmbedder(CheckedEmbedder):
    """The embedder of a plugin, under the name that the settings have for it."""

    def __init__(self, inner: Embedder, name: str) -> None:
        super().__init__(inner)
        spec = inner.spec
        if not isinstance(spec, ModelSpec) or spec.dimension < 1:
            raise TypeError("its spec is no ModelSpec")
        self._spec = replace(spec, name=name)

    @property
    def spec(self) -> ModelSpec:
        return self._spec
