"""
Keep a slow, absent or broken model from holding up a query.

`Budget` limits the seconds that all model calls of one query take together. `ModelGuard` protects
the caller of one model: it abandons a call that takes too long, and after several failures it does
not call the model for a while, so that not every query waits for it. `Memory` has earlier answers.
A query asks a model through `Guarded`, which is all three.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, TypeVar

from qmd.errors import InferenceError, QmdError, TransientInferenceError

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
        box: list[T] = []
        problem: list[InferenceError] = []
        done = threading.Event()
        late: list[TransientInferenceError] = []

        def run() -> None:
            try:
                box.append(work())
            except InferenceError as error:
                problem.append(error)
            except QmdError as error:  # a setting is wrong: for a query that is all the same
                problem.append(InferenceError(error.message, hint=error.hint))
            except Exception as error:  # noqa: BLE001 - logged, and raised at the caller
                _log.exception("%s failed", self.name)
                problem.append(
                    TransientInferenceError(f"{self.name} failed: {type(error).__name__}.")
                )
            finally:
                with self._lock:
                    done.set()
                    self._left_behind -= len(late)

        threading.Thread(target=run, name="qmd-model", daemon=True).start()
        if not done.wait(timeout_s):
            with self._lock:
                if not done.is_set():
                    late.append(
                        TransientInferenceError(
                            f"{self.name} has not answered within {timeout_s:.1f} s."
                        )
                    )
                    self._left_behind += 1
        if late:
            self._failed(late[0])
            raise late[0]
        if problem:
            self._failed(problem[0])
            raise problem[0]
        with self._lock:
            self._failures = 0
        return box[0]

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
