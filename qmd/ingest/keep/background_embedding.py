"""Embed new text in the background: one text at a time, on a thread of low priority."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import DatabaseReplacedError, QmdError
from qmd.ingest.embedding import embed
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.freshness import KeeperState
from qmd.store.models import StoredModel
from qmd.system import clock
from qmd.values import ModelSpec, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import Embedder
    from qmd.store import Reader, Store

_log = logging.getLogger(__name__)

_LINUX: bool = sys.platform == "linux"
#: Without a wake-up: another process may have chosen or fetched a model, or stored a document.
LOOK_S = 5.0
LONGEST_RETRY_S = 300.0
TICK_S = 0.25
#: For the end of what is being embedded; a text takes a tenth of a second here.
PATIENCE_S = 5.0
NICE = 10


class EmbedderProvider(NamedTuple):
    """
    Where the keeper gets embedders.

    ``target_name`` names the model that the index is to have; ``is_available`` says whether
    `open` works without a download; it never downloads.
    """

    target_name: Callable[[Reader], str]
    is_available: Callable[[str], bool]
    open: Callable[[str], Embedder]


class RunStopped(BaseException):
    """Ends a run from inside; what was committed stays."""


class BackgroundEmbedder:
    """A thread that embeds what waits for it."""

    def __init__(
        self, store: Store, events: EventBus, state: KeeperState, models: EmbedderProvider
    ) -> None:
        self._store = store
        self._events = events
        self._state = state
        self._models = models
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._next_tick = 0.0
        self._thread = threading.Thread(target=self._run, name="qmd-embedder", daemon=True)

    def start(self) -> None:
        """It begins with `wake`: text is searchable by words first."""
        self._thread.start()

    def wake(self) -> None:
        """New text may wait."""
        self._woken.set()

    def stop(self) -> None:
        """
        Returns when the text that is being embedded is done; a server that is slow to answer is
        not waited for, and what it answers is lost.
        """
        self._stop.set()
        self._woken.set()
        if self._thread is not threading.current_thread():
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        _lower_priority()
        wait_s, failures = 0.0, 0
        while not self._stop.is_set():
            # After a failure the wait is for the failing thing, which new text does not mend.
            woken = (self._stop if failures else self._woken).wait(wait_s or LOOK_S)
            if self._stop.is_set():
                return
            if not woken and self._state.indexing:
                continue
            self._woken.clear()
            problem = None
            try:
                problem = self._embed_waiting()
                failures = 0
            except RunStopped:
                return
            except DatabaseReplacedError:
                failures = 0  # the keeper notices it as well, and ends this thread
            except QmdError as error:
                failures += 1
                problem = f"No vectors are made: {error.with_hint}"
                _log.warning("embedding failed: %s", error)
            except Exception as error:  # noqa: BLE001 - logged, told and tried again
                failures += 1
                problem = f"No vectors are made: {type(error).__name__}; the log tells more."
                _log.exception("embedding failed")
            wait_s = min(LONGEST_RETRY_S, 5.0 * 2**failures) if failures else LOOK_S
            if self._state.notice("embedding", problem) and problem is not None:
                self._events.publish(Event("problem", clock.now(), message=problem))

    def _embed_waiting(self) -> str | None:
        """
        Embed all that waits; why not, in a sentence, where a person must decide.

        First for the model that answers, then for the one that is to take its place.
        """
        with self._store.reading() as reader:
            active = reader.models.active()
            waiting = reader.embeddings.count_waiting(None)
            coming = reader.models.coming()
            chosen = reader.models.chosen_name()
            target = self._models.target_name(reader)
        problem = None
        if waiting:
            problem = self._embed_for(active, active.name if active else target)
        if active is None or target == active.name:
            return problem
        if chosen is None and (coming is None or coming.name != target):
            # A setting is this process's own; others may have another.
            return problem or (
                f"The vectors are those of {active.name}, and this process has {target}:"
                f" 'qmd models use {target}' changes to it."
            )
        return self._embed_for(None, target)

    def _embed_for(self, model: StoredModel | None, name: str) -> str | None:
        """``model``: whose vectors they must be; None for any of this name."""
        if not self._models.is_available(name):
            if model is None:
                return (
                    f"The embedding model {name} is not on this machine: 'qmd embed' gets it and"
                    " makes vectors."
                )
            return f"New text gets no vectors: the embedding model {name} is not on this machine."
        embedder = self._models.open(name)
        if model is not None and model.fingerprint != embedder.spec.fingerprint:
            return (
                f"The vectors are those of {model.name} as it was, and this process has another"
                f" {embedder.spec.name}: 'qmd embed' makes all anew."
            )
        gentle = _InterruptibleEmbedder(embedder, self._stop)
        report = embed(self._store, gentle, progress=self._progress)
        if report.remaining:
            self._woken.set()
        return None

    def _progress(self, tick: Progress) -> None:
        if self._stop.is_set():
            raise RunStopped
        now = monotonic()
        if now >= self._next_tick or tick.done == tick.total:
            self._next_tick = now + TICK_S
            self._events.publish(Event("embedding", clock.now(), done=tick.done, total=tick.total))


class _InterruptibleEmbedder:
    """
    An embedder on the calling thread alone, that can be stopped between two texts.

    A server is asked for many at once: there each question has its price.
    """

    def __init__(self, embedder: Embedder, stop: threading.Event) -> None:
        self._embedder = embedder
        self._stop = stop
        self._together = 32 if getattr(embedder, "asks_server", False) else 1

    @property
    def spec(self) -> ModelSpec:
        return self._embedder.spec

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = [np.empty((0, self.spec.dimension), np.float32)]
        for start in range(0, len(texts), self._together):
            if self._stop.is_set():
                raise RunStopped
            rows.append(self._embedder.embed_passages(texts[start : start + self._together]))
        return np.concatenate(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._embedder.embed_query(text)


def _lower_priority() -> None:
    """On Linux a thread has a priority of its own; elsewhere the process has one, left alone."""
    if _LINUX:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        except OSError:
            _log.debug("the priority of the embedding thread cannot be lowered")
