"""
Models as a query uses them: within its time, and asked nothing twice.

Each class wraps a model. It first looks into the `Memory`, which costs no time of the query's
`Budget`; what is not there it asks the model through its `ModelGuard`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from qmd.errors import InferenceError
from qmd.inference.protocols import (
    EmbeddedTexts,
    Embedder,
    EmbedderWrapper,
    Expander,
    Expansion,
    Reranker,
    Role,
)
from qmd.models.checked import checked_expansions, checked_scores
from qmd.models.guard import Budget, ModelGuard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["expansion", "score", "vector"]

#: A reranker gets a little less time than its guard waits, so that it can return what it has.
_SHARE_OF_TIME = 0.95


class Memory(Protocol):
    """Earlier answers of models, by digests of what they were asked. It may forget, never fails."""

    def recall(self, kind: Kind, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    def keep(self, kind: Kind, model: str, values: Mapping[bytes, bytes]) -> None: ...


def _recall(
    memory: tuple[Memory, str] | None, kind: Kind, keys: Sequence[bytes]
) -> Mapping[bytes, bytes]:
    return {} if memory is None else memory[0].recall(kind, memory[1], keys)


def _keep(memory: tuple[Memory, str] | None, kind: Kind, values: Mapping[bytes, bytes]) -> None:
    if memory is not None:
        memory[0].keep(kind, memory[1], values)


class CarefulExpander:
    """
    An `Expander` within a budget.

    Args:
        share: The part (0 to 1) of the time that is left which one call may take.
        memory: With the name of the model in it, which changes when the answers would.
    """

    def __init__(
        self,
        inner: Expander,
        guard: ModelGuard,
        budget: Budget,
        *,
        share: float = 1.0,
        memory: tuple[Memory, str] | None = None,
    ) -> None:
        self._inner, self._guard, self._budget = inner, guard, budget
        self._share, self._memory = share, memory

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        key = _digest(query, str(limit))
        remembered = _expansions(_recall(self._memory, "expansion", [key]).get(key), limit)
        if remembered is not None:
            return remembered
        with self._budget.spend(self._share) as left_s:
            time_s = min(timeout_s, left_s)
            expansions = self._guard.call(
                lambda: checked_expansions(
                    self._inner.expand(query, limit=limit, timeout_s=time_s), limit
                ),
                time_s,
            )
        value = json.dumps(
            [[expansion.kind, expansion.text] for expansion in expansions], ensure_ascii=False
        )
        _keep(self._memory, "expansion", {key: value.encode("utf-8", "replace")})
        return expansions


class CarefulReranker:
    """A `Reranker` within a budget; only passages that it has not scored before are sent."""

    def __init__(
        self,
        inner: Reranker,
        guard: ModelGuard,
        budget: Budget,
        *,
        memory: tuple[Memory, str] | None = None,
    ) -> None:
        self._inner, self._guard = inner, guard
        self._budget, self._memory = budget, memory
        self.name = inner.name

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        keys = [_digest(query, passage) for passage in passages]
        scores = _scores(_recall(self._memory, "score", keys))
        missing = {key: text for key, text in zip(keys, passages, strict=True) if key not in scores}
        if missing:
            with self._budget.spend() as left_s:
                time_s = min(timeout_s, left_s)
                scores |= self._guard.call(lambda: self._ask(query, missing, time_s), time_s)
        return [scores.get(key) for key in keys]

    def _ask(self, query: str, texts: Mapping[bytes, str], time_s: float) -> Mapping[bytes, float]:
        """
        The scores of the texts that the model has reached.

        They are kept here, not by the caller: if they come too late for this question, they serve
        the next.
        """
        answers = checked_scores(
            self._inner.rerank(query, list(texts.values()), timeout_s=_SHARE_OF_TIME * time_s),
            len(texts),
        )
        scores = {
            key: score for key, score in zip(texts, answers, strict=True) if score is not None
        }
        _keep(self._memory, "score", {key: repr(score).encode() for key, score in scores.items()})
        return scores


class CarefulEmbedder(EmbedderWrapper):
    """An `Embedder` that embeds queries within a budget."""

    def __init__(
        self,
        inner: Embedder,
        guard: ModelGuard,
        budget: Budget,
        memory: Memory,
        *,
        share: float = 1.0,
    ) -> None:
        super().__init__(inner)
        self._guard, self._budget = guard, budget
        self._memory, self._share = memory, share

    @property
    def gives_token_states(self) -> bool:
        return False  # they are not remembered

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        import numpy as np

        if role == "passage":
            return super().embed(texts, role)
        return EmbeddedTexts(np.stack([self._question(text) for text in texts]))

    def _question(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        spec, key = self.spec, _digest(text)
        remembered = self._memory.recall("vector", spec.fingerprint, [key]).get(key)
        if remembered is not None and len(remembered) == 4 * spec.dimension:
            vector = np.frombuffer(remembered, "<f4").astype(np.float32)
            if np.isfinite(vector).all():
                return vector
        with self._budget.spend(self._share) as left_s:
            vector = self._guard.call(lambda: self._inner.embed_query(text), left_s)
        self._memory.keep("vector", spec.fingerprint, {key: vector.astype("<f4").tobytes()})
        return vector


# What the database holds may be damaged. Then the model is asked again.


def _expansions(value: bytes | None, limit: int) -> list[Expansion] | None:
    if value is None:
        return None
    try:
        return checked_expansions(
            [Expansion(*kind_and_text) for kind_and_text in json.loads(value)], limit
        )
    except (InferenceError, ValueError, TypeError, RecursionError):
        return None


def _scores(values: Mapping[bytes, bytes]) -> dict[bytes, float]:
    scores = {}
    for key, value in values.items():
        with suppress(InferenceError, ValueError):
            number = float(value)
            checked_scores([number], 1)
            scores[key] = number
    return scores


def _digest(*parts: str) -> bytes:
    """16 bytes that identify texts in this order; a lone surrogate counts as itself."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()[:16]
