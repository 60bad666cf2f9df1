"""
Models as a query uses them: within its time, and asked nothing twice.

Each class wraps a model. It first looks into the memory of its `Guarded`; what is not there it asks
the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

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
from qmd.models.guard import Guarded

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A reranker gets a little less time than its guard waits, so that it can return what it has.
_SHARE_OF_TIME = 0.95


class CarefulExpander:
    """An `Expander` within a budget."""

    def __init__(self, inner: Expander, guarded: Guarded) -> None:
        self._inner, self._guarded = inner, guarded

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        key = _digest(query, str(limit))
        remembered = _expansions(self._guarded.recall("expansion", [key]).get(key), limit)
        if remembered is not None:
            return remembered
        expansions = self._guarded.call(
            lambda time_s: checked_expansions(
                self._inner.expand(query, limit=limit, timeout_s=time_s), limit
            ),
            timeout_s,
        )
        value = json.dumps(
            [[expansion.kind, expansion.text] for expansion in expansions], ensure_ascii=False
        )
        self._guarded.keep("expansion", {key: value.encode("utf-8", "replace")})
        return expansions


class CarefulReranker:
    """A `Reranker` within a budget; only passages that it has not scored before are sent."""

    def __init__(self, inner: Reranker, guarded: Guarded) -> None:
        self._inner, self._guarded = inner, guarded
        self.name = inner.name

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        keys = [_digest(query, passage) for passage in passages]
        scores = _scores(self._guarded.recall("score", keys))
        missing = {key: text for key, text in zip(keys, passages, strict=True) if key not in scores}
        if missing:
            scores |= self._guarded.call(
                lambda time_s: self._ask(query, missing, time_s), timeout_s
            )
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
        self._guarded.keep("score", {key: repr(score).encode() for key, score in scores.items()})
        return scores


class CarefulEmbedder(EmbedderWrapper):
    """An `Embedder` that embeds queries within a budget."""

    def __init__(self, inner: Embedder, guarded: Guarded) -> None:
        super().__init__(inner)
        self._guarded = guarded

    @property
    def gives_token_states(self) -> bool:
        return False  # they are not remembered

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        if role == "passage":
            return super().embed(texts, role)
        return EmbeddedTexts(np.stack([self._question(text) for text in texts]))

    def _question(self, text: str) -> NDArray[np.float32]:
        spec, key = self.spec, _digest(text)
        guarded = replace(self._guarded, model=spec.fingerprint)
        remembered = guarded.recall("vector", [key]).get(key)
        if remembered is not None and len(remembered) == 4 * spec.dimension:
            vector = np.frombuffer(remembered, "<f4").astype(np.float32)
            if np.isfinite(vector).all():
                return vector
        vector = guarded.call(lambda _time_s: self._inner.embed_query(text))
        guarded.keep("vector", {key: vector.astype("<f4").tobytes()})
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
