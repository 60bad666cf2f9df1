"""
Embeds new text and reads the text in pictures in the background, a little at a time.

One text at a time is embedded in a thread of low priority, one page at a time is read in a worker
process.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import QmdError
from qmd.inference.embedded import build
from qmd.inference.protocols import EmbeddedTexts, Embedder, EmbedderWrapper, Role, TokenStates
from qmd.ingest import ocr
from qmd.ingest.embedding import count_lacking_english, embed, should_have_states
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.loop import Loop, LoopStopped
from qmd.store.sql.models import StoredModel
from qmd.system import clock
from qmd.values import Progress
from qmd.values.pictures import Recogniser

if TYPE_CHECKING:
    from qmd.store import Reader, Store

_log = logging.getLogger(__name__)

_LINUX: bool = sys.platform == "linux"
#: Seconds between two looks for text without a wake-up. Another process may have chosen or fetched
#: a model, or stored a document.
LOOK_S = 5.0
#: The first and the longest wait after a failure, in seconds.
FIRST_RETRY_S, LONGEST_RETRY_S = 10.0, 300.0
#: The shortest time between two events about progress, in seconds.
TICK_S = 0.25
#: Seconds that `stop` waits for the current text, which takes about 0.1 s, or for the page of a
#: picture, which is then given up; others read it later.
PATIENCE_S = 5.0
#: Seconds of gathering common words between two looks whether to stop.
GATHERING_S = 0.5
#: The nice value of the thread, on Linux. All requests wait while the thread has Python's lock, so
#: it must not wait long for a core itself: with 10, a search among many busy processes on two
#: cores once took 20 s, with 3 at most 0.5 s.
NICE = 3


class EmbedderProvider(NamedTuple):
    """
    The functions by which the keeper gets embedders.

    Attributes:
        target_name: Gives the name of the model that the index is to have.
        is_available: Says whether `open` works without a download.
        open: Opens a model by its name. It never downloads one.
    """

    target_name: Callable[[Reader], str]
    is_available: Callable[[str], bool]
    open: Callable[[str], Embedder]


class BackgroundEmbedder(Loop):
    """
    A loop that embeds the documents without vectors.

    Its work begins with `wake`, when new text is searchable by words. `stop` ends it after the
    present text; it waits at most `PATIENCE_S` for a slow embedding server, whose answer is then
    lost.
    """

    def __init__(
        self, store: Store, events: EventBus, state: KeeperState, models: EmbedderProvider
    ) -> None:
        self._store = store
        self._events = events
        self._state = state
        self._models = models
        self._next_tick = 0.0
        #: The model and the version of the vectors when no token states and no vectors of English
        #: were missing, or none of those could be made.
        self._complete: tuple[StoredModel, tuple[int, int]] | None = None
        self._problem: str | None = None
        super().__init__(
            "qmd-embedder",
            self._look,
            "No vectors are made",
            partial(state.tell, "embedding"),
            every_s=LOOK_S,
            retry_s=(FIRST_RETRY_S, LONGEST_RETRY_S),
            patience_s=PATIENCE_S,
        )

    def _look(self) -> str | None:
        if self.was_woken or not self._state.indexing:
            self._problem = self._embed_waiting()
        return self._problem

    def _embed_waiting(self) -> str | None:
        """
        Embed all waiting documents: first for the active model, then for the one to replace it.

        Returns:
            A sentence that says why nothing was embedded, if a person must decide; otherwise None.
        """
        with self._store.reading() as reader:
            active = reader.models.active()
            waiting = reader.embeddings.count_waiting(None)
            coming = reader.models.coming()
            chosen = reader.models.chosen_name()
            target = self._models.target_name(reader)
            only_states = not waiting and self._lacks_states_or_english(reader, active)
        problem = None
        if waiting:
            problem = self._embed_for(active, active.name if active else target)
        elif only_states and active is not None and self._models.is_available(active.name):
            self._embed_for(active, active.name)  # search works without: nothing to report
            # If some are missing now, the model gives none: do not try again and again.
            self._complete = self._store.read(lambda reader: (active, reader.vectors.version()))
        if active is None or target == active.name:
            return problem
        if chosen is None and (coming is None or coming.name != target):
            # The settings belong to this process alone; other processes may have other ones.
            return problem or (
                f"The vectors are those of {active.name}, and this process has {target}:"
                f" 'qmd models use {target}' changes to it."
            )
        return self._embed_for(None, target)

    def _lacks_states_or_english(self, reader: Reader, active: StoredModel | None) -> bool:
        """Whether texts with vectors lack token states or one of English, and could have them."""
        if active is None or not should_have_states(reader, active):
            return False
        state = (active, reader.vectors.version())
        if state == self._complete:  # counting 100,000 chunks takes a tenth of a second
            return False
        if reader.tokens.count_waiting(active) or (
            active.fingerprint == build.FINGERPRINT and count_lacking_english(reader, active)
        ):
            return True
        self._complete = state
        return False

    def _embed_for(self, model: StoredModel | None, name: str) -> str | None:
        """
        Embed the waiting documents with the model ``name``.

        Args:
            model: The stored model that the embedder must equal; None if the name is enough.

        Returns:
            A sentence that says why nothing was embedded; None if it was.
        """
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
        interruptible = _InterruptibleEmbedder(embedder, self.stopping)
        report = embed(self._store, interruptible, progress=self._progress)
        if report.remaining:
            self.wake()
        return None

    def _progress(self, tick: Progress) -> None:
        if self.stopping.is_set():
            raise LoopStopped
        now = monotonic()
        if now >= self._next_tick or tick.done == tick.total:
            self._next_tick = now + TICK_S
            self._events.publish(Event("embedding", clock.now(), done=tick.done, total=tick.total))


class _InterruptibleEmbedder(EmbedderWrapper):
    """
    An embedder that stops between two texts when an event is set.

    A server gets several texts per request, because each request has a cost.
    """

    def __init__(self, embedder: Embedder, stop: threading.Event) -> None:
        super().__init__(embedder)
        self._stop = stop
        self._batch_size = 32 if self.asks_server else 1

    @property
    def gives_token_states(self) -> bool:
        """
        As the embedder; asked before the first text, so that the weights are loaded here.

        The library loads a tokenizer without releasing Python's lock. At a low priority, on a busy
        machine, that took seconds, for which all requests to this process waited.
        """
        gives_token_states = super().gives_token_states
        lower_priority()
        return gives_token_states

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        import numpy as np

        rows = [np.empty((0, self.spec.dimension), np.float32)]
        states: tuple[TokenStates, ...] = ()
        for start in range(0, len(texts), self._batch_size):
            if self._stop.is_set():
                raise LoopStopped
            batch = texts[start : start + self._batch_size]
            embedded = super().embed(batch, role, with_tokens=with_tokens)
            rows.append(embedded.vectors)
            states += embedded.states
        return EmbeddedTexts(np.concatenate(rows), states)


def lower_priority() -> None:
    """Lower the priority of this thread on Linux; elsewhere only processes have a priority."""
    if _LINUX:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        except OSError:
            _log.debug("the priority of the embedding thread cannot be lowered")


def gathering_loop(store: Store) -> Loop:
    """A loop of low priority that gathers the common words of a large database when it is woken."""

    def turn() -> None:
        lower_priority()
        while not loop.stopping.is_set() and store.gather_common_words(GATHERING_S):
            pass

    def tell(problem: str | None, cause: QmdError | None) -> None:
        if problem is not None:  # searches go on without
            _log.warning("%s", cause or problem)

    loop = Loop(
        "qmd-words",
        turn,
        "Common words are not gathered",
        tell,
        every_s=None,
        retry_s=(FIRST_RETRY_S, LONGEST_RETRY_S),
        patience_s=PATIENCE_S,
    )
    return loop


#: Seconds between two looks for pictures without a wake-up. Another process may have stored a
#: document, and memory may be free again.
LOOK_FOR_PICTURES_S = 30.0


class BackgroundOcr(Loop):
    """
    A loop that reads the pictures that wait, if this machine can.

    Its work begins with `wake`, when documents have changed. `stop` ends it at once.
    """

    def __init__(
        self, store: Store, events: EventBus, state: KeeperState, recogniser: Recogniser
    ) -> None:
        self._store = store
        self._events = events
        self._recogniser = recogniser
        super().__init__(
            "qmd-ocr",
            self._look,
            "The text in pictures is not read",
            partial(state.tell, "ocr"),
            every_s=LOOK_FOR_PICTURES_S,
            retry_s=(FIRST_RETRY_S, LONGEST_RETRY_S),
            patience_s=PATIENCE_S,
        )

    def _look(self) -> str | None:
        with self._store.reading() as reader:
            waiting = reader.pictures.count_waiting(self._recogniser.name)
        if not waiting or not ocr.is_installed(self._recogniser):  # 'qmd status' says so
            return None
        trouble = ocr.problem(self._recogniser)
        if trouble is not None:
            return str(trouble)
        ocr.read_pictures(self._store, self._recogniser, events=self._events, check=self._check)
        return None

    def _check(self) -> None:
        if self.stopping.is_set():
            raise LoopStopped
