"""
Keeps what is wrong with a model away from the query that asks it: slowness, failures, bad answers.

`Budget` limits the seconds that all model calls of one query take together. `ModelGuard` protects
the caller of one model: it abandons a call that takes too long, and after several failures it does
not call the model for a while, so that not every query waits for it. `Memory` has earlier answers.
A query asks a model through `Guarded`, which is all three.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

import numpy as np

from qmd.errors import InferenceError, QmdError, TransientInferenceError
from qmd.inference import protocols
from qmd.values import ModelSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


T = TypeVar("T")
Kind = Literal["expansion", "score", "vector"]

_log = logging.getLogger(__name__)

#: After this many failures in a row the model is not called for `PAUSE_S` seconds. Each further
#: failure doubles the pause, up to `LONGEST_PAUSE_S`.
FAILURES = 2
PAUSE_S, LONGEST_PAUSE_S = 15.0, 300.0
#: The most abandoned calls that may still be running. The models of this project end soon, but
#: the model of a library user may never end.
MOST_LEFT_BEHIND = 4


class ModelGuard:
    """
    Guards the calls of one model in this process. Thread-safe.

    Args:
        name: The name of the model in messages.
        clock: Returns the time in seconds.
    """

    def __init__(self, name: str, *, clock: Callable[[], float] = monotonic) -> None:
        self.name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._problem = ""
        self._closed_until = 0.0
        self._left_behind = 0

    def call(self, work: Callable[[], T], timeout_s: float) -> T:
        """
        Run ``work`` on a thread and return its result.

        If it takes longer than ``timeout_s`` seconds, it is abandoned and its result is dropped.

        Raises:
            TransientInferenceError: It took too long, or the model has failed several times and is
                not called now.
            InferenceError: ``work`` failed; any other exception is converted to it.
        """
        self._enter()
        answer: Future[T] = Future()

        def run() -> None:
            problem: InferenceError | None = None
            try:
                result = work()
            except InferenceError as error:
                problem = error
            except QmdError as error:  # a setting is wrong: for a query that is all the same
                problem = InferenceError(error.message, hint=error.hint)
            except Exception as error:  # noqa: BLE001 - logged, and raised at the caller
                _log.exception("%s failed", self.name)
                problem = TransientInferenceError(f"{self.name} failed: {type(error).__name__}.")
            if not answer.set_running_or_notify_cancel():  # it was abandoned
                with self._lock:
                    self._left_behind -= 1
            elif problem is not None:
                answer.set_exception(problem)
            else:
                answer.set_result(result)

        threading.Thread(target=run, name="qmd-model", daemon=True).start()
        try:
            if wait([answer], timeout_s).not_done and answer.cancel():
                with self._lock:
                    self._left_behind += 1
                raise TransientInferenceError(
                    f"{self.name} has not answered within {timeout_s:.1f} s."
                )
            result = answer.result()
        except InferenceError as error:
            self._failed(error)
            raise
        with self._lock:
            self._failures = 0
        return result

    def _enter(self) -> None:
        with self._lock:
            left_s = self._closed_until - self._clock()
            if self._failures >= FAILURES:
                if left_s > 0:
                    raise TransientInferenceError(
                        f"{self.name} is not asked for {left_s:.0f} s more: {self._problem}"
                    )
                # One call may try; the others are refused until it has ended.
                self._closed_until = self._clock() + PAUSE_S
            if self._left_behind >= MOST_LEFT_BEHIND:
                raise TransientInferenceError(
                    f"{self.name} is still busy with {self._left_behind} earlier questions."
                )

    def _failed(self, error: InferenceError) -> None:
        with self._lock:
            self._failures += 1
            self._problem = str(error)
            if self._failures >= FAILURES:
                pause_s = PAUSE_S * 2.0 ** min(self._failures - FAILURES, 10)
                self._closed_until = self._clock() + min(LONGEST_PAUSE_S, pause_s)


class Budget:
    """Seconds that all model calls of one query may take together. Thread-safe."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left_s = seconds
        self.seconds = seconds

    @contextmanager
    def spend(self, share: float = 1.0) -> Iterator[float]:
        """
        How many seconds the call within may take: at most a ``share`` of what is left.

        Raises:
            TransientInferenceError: Nothing is left.
        """
        with self._lock:
            allowed_s = self._left_s * share
        if allowed_s <= 0:
            raise TransientInferenceError(
                f"The models have taken the {self.seconds:.1f} s that a query may take.",
                hint="model_budget (QMD_MODEL_BUDGET) sets the seconds.",
            )
        began = self._clock()
        try:
            yield allowed_s
        finally:
            with self._lock:
                self._left_s -= self._clock() - began


class Memory(Protocol):
    """Earlier answers of models, by digests of what they were asked. It may forget, never fails."""

    def recall(self, kind: Kind, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    def keep(self, kind: Kind, model: str, values: Mapping[bytes, bytes]) -> None: ...


@dataclass(frozen=True, slots=True)
class Guarded:
    """
    How one query asks one model: nothing twice, and within its time.

    Attributes:
        share: The part (0 to 1) of the time that is left which one call may take.
        memory: Costs no time of the budget; None to ask the model always.
        model: The name of the model in the memory, which changes when the answers would.
    """

    guard: ModelGuard
    budget: Budget
    share: float = 1.0
    memory: Memory | None = None
    model: str = ""

    def call(self, work: Callable[[float], T], timeout_s: float | None = None) -> T:
        """
        What ``work`` returns; it is called with the seconds that it may take.

        Raises:
            InferenceError: See `ModelGuard.call` and `Budget.spend`.
        """
        with self.budget.spend(self.share) as left_s:
            time_s = left_s if timeout_s is None else min(timeout_s, left_s)
            return self.guard.call(lambda: work(time_s), time_s)

    def recall(self, kind: Kind, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {} if self.memory is None else self.memory.recall(kind, self.model, keys)

    def keep(self, kind: Kind, values: Mapping[bytes, bytes]) -> None:
        if self.memory is not None:
            self.memory.keep(kind, self.model, values)


# --- checks of answers ------------------------------------------------------------------
# What a model returns is checked before it is used. A vector of NaN would be near to every query. A
# vector of another length could not be read from the database.

#: A vector is scaled to norm 1 only if its norm differs from 1 by more than this rounding error.
TOLERANCE = 1e-3

_HINT = (
    "No vector of this batch was stored. Mend the model, or use another:"
    " 'qmd models list', then 'qmd models use NAME'."
)


class CheckedEmbedder(protocols.EmbedderWrapper):
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
        self, texts: Sequence[str], role: protocols.Role, *, with_tokens: bool = False
    ) -> protocols.EmbeddedTexts:
        with self._naming_errors():
            returned = super().embed(texts, role, with_tokens=with_tokens)
            states = tuple(returned.states)
        if with_tokens and len(states) != len(texts):
            raise self._unusable(f"token states of {len(states)} texts for {len(texts)}")
        vectors = self._checked(returned.vectors, len(texts))
        return protocols.EmbeddedTexts(vectors, tuple(map(self._checked_states, states)))

    def _checked_states(self, returned: protocols.TokenStates) -> protocols.TokenStates:
        """Finite, rounded to float16, float32[t, dimension]. Raises InferenceError."""
        try:
            ids, states = np.asarray(returned.ids), np.asarray(returned.states)
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unusable("what are no token states") from error
        if not ids.size and not states.size:
            return protocols.no_states(self.spec.dimension)
        if ids.dtype.kind not in "iu" or states.dtype.kind not in "fiu":
            raise self._unusable("token states that are no numbers")
        if ids.ndim != 1 or states.shape != (len(ids), self.spec.dimension):
            raise self._unusable(f"token states of shape {states.shape} for {ids.shape} tokens")
        with np.errstate(over="ignore"):  # what is infinite now is refused below
            states = states.astype(np.float16).astype(np.float32)
        ids = ids.astype(np.int32)
        if ids[0] < 0 or (np.diff(ids) <= 0).any() or not np.isfinite(states).all():
            raise self._unusable("token states that are not finite, or not in the order of the ids")
        return protocols.TokenStates(ids, states)

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


def checked_expansions(
    returned: Sequence[protocols.Expansion], limit: int
) -> list[protocols.Expansion]:
    """
    The first ``limit`` expansions that are not blank.

    Raises:
        InferenceError: ``returned`` is not a sequence of expansions.
    """
    try:
        expansions = [expansion for expansion in returned if expansion.text.strip()]
        wrong = any(
            expansion.kind not in get_args(protocols.ExpansionKind) for expansion in expansions
        )
    except (AttributeError, TypeError) as error:
        raise InferenceError("The answer is no list of expansions.") from error
    if wrong:
        raise InferenceError("An expansion is neither lex, vec nor hyde.")
    return expansions[:limit]


class PluginEmbedder(CheckedEmbedder):
    """The embedder of a plugin, under the name that the settings have for it."""

    def __init__(self, inner: protocols.Embedder, name: str) -> None:
        super().__init__(inner)
        spec = inner.spec
        if not isinstance(spec, ModelSpec) or spec.dimension < 1:
            raise TypeError("its spec is no ModelSpec")
        self._spec = replace(spec, name=name)

    @property
    def spec(self) -> ModelSpec:
        return self._spec


# --- models within a budget -------------------------------------------------------------
# Each class wraps a model. It first looks into the memory of its `Guarded`; what is not there it
# asks the model.

#: A reranker gets a little less time than its guard waits, so that it can return what it has.
_SHARE_OF_TIME = 0.95


class CarefulExpander:
    """An `Expander` within a budget."""

    def __init__(self, inner: protocols.Expander, guarded: Guarded) -> None:
        self._inner, self._guarded = inner, guarded

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[protocols.Expansion]:
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

    def __init__(self, inner: protocols.Reranker, guarded: Guarded) -> None:
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


class CarefulEmbedder(protocols.EmbedderWrapper):
    """An `Embedder` that embeds queries within a budget."""

    def __init__(self, inner: protocols.Embedder, guarded: Guarded) -> None:
        super().__init__(inner)
        self._guarded = guarded

    @property
    def gives_token_states(self) -> bool:
        return False  # they are not remembered

    def embed(
        self, texts: Sequence[str], role: protocols.Role, *, with_tokens: bool = False
    ) -> protocols.EmbeddedTexts:
        if role == "passage":
            return super().embed(texts, role)
        return protocols.EmbeddedTexts(np.stack([self._question(text) for text in texts]))

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


def _expansions(value: bytes | None, limit: int) -> list[protocols.Expansion] | None:
    if value is None:
        return None
    try:
        return checked_expansions(
            [protocols.Expansion(*kind_and_text) for kind_and_text in json.loads(value)], limit
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
