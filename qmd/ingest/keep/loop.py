"""A loop that outlives what goes wrong in a turn; one that tells what other processes change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import DatabaseReplacedError, QmdError, SchemaTooNewError
from qmd.ingest.events import Event, EventBus, EventKind
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import ChangeFeed, Store


_log = logging.getLogger(__name__)


class LoopStopped(BaseException):
    """Ends a turn from inside, and its loop. What the turn has committed stays."""


class Loop:
    """
    Takes turns: on a thread of its own (`start`), or on that of its caller (`run`).

    Each turn begins when somebody has called `wake`, or after ``every_s``. After a turn that
    failed the loop waits, ever longer, whatever wakes it: new work does not remove the cause.

    Args:
        turn: Does some work. Returns the problem that keeps it from working, as a sentence, or
            None.
        failure: What it means that a turn raises an error, as the beginning of a sentence.
        tell: Called after each turn with its problem, a sentence, or None, and with the error that
            the sentence is made of, if there is one. (A log leaves out some words of an error.)
        every_s: Seconds between two turns that nobody asks for; None for no such turns.
        retry_s: The first and the longest pause after a failure, in seconds.
        stopping: What ends the loop; `stop` sets it.
        interrupt: Called by `stop`, so that a turn that waits for something ends.
        patience_s: Seconds that `stop` waits for the present turn; None for all that it takes.
        ends_with: The errors of a turn that end the loop. (Whoever has started it notices too
            that another file is at the path of the database, or that a newer program has migrated
            it, and begins anew.)

    Attributes:
        was_woken: Whether the present turn was asked for, by `wake` or because one has failed.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], str | None],
        failure: str,
        tell: Callable[[str | None, QmdError | None], object],
        *,
        every_s: float | None,
        retry_s: tuple[float, float],
        stopping: threading.Event | None = None,
        interrupt: Callable[[], object] = lambda: None,
        patience_s: float | None = None,
        ends_with: tuple[type[QmdError], ...] = (DatabaseReplacedError, SchemaTooNewError),
    ) -> None:
        self.stopping = stopping or threading.Event()
        self.was_woken = False
        self._turn, self._failure, self._tell = turn, failure, tell
        self._every_s, self._retry_s = every_s, retry_s
        self._interrupt, self._patience_s = interrupt, patience_s
        self._ends_with = ends_with
        self._woken = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have the next turn begin at once."""
        self._woken.set()

    def stop(self) -> None:
        """End the loop after the present turn, and wait for that."""
        self.stopping.set()
        self._woken.set()
        self._interrupt()
        if self._thread is not threading.current_thread():
            self._thread.join(self._patience_s)

    def run(self) -> None:
        """Take turns until the loop is stopped. Every other error of a turn is told."""
        while self._wait():
            problem, cause = None, None
            try:
                problem = self._turn()
                self._failures = 0
            except LoopStopped:
                return
            except self._ends_with:
                return
            except QmdError as error:
                self._failures += 1
                problem, cause = f"{self._failure}: {error.with_hint}", error
            except Exception as error:  # noqa: BLE001 - logged, told and tried again
                self._failures += 1
                problem = f"{self._failure}: {type(error).__name__}; the log tells more."
                _log.error("%s", self._failure, exc_info=error)
            self._tell(problem, cause)

    def _wait(self) -> bool:
        """Wait for the next turn; returns whether there is one."""
        if self.stopping.is_set():  # while a turn was taken
            return False
        if self._failures:
            first_s, longest_s = self._retry_s
            self.stopping.wait(min(longest_s, first_s * 2.0 ** min(self._failures - 1, 20)))
            self.was_woken = True
        else:
            self.was_woken = self._woken.wait(self._every_s)
        self._woken.clear()
        return not self.stopping.is_set()


_RETRY_S = 2.0
_LISTEN_S = 60.0


class _FollowedDocument(NamedTuple):
    collection: str
    path: str
    hash: str


class IndexFollower:
    """
    Compares the index with its earlier state, in a process that does not hold the lock.

    It compares even while nobody has subscribed, so that the first change after a subscription is
    noticed. Changes that this process makes itself are published twice: at once, and here.
    """

    def __init__(self, store: Store, events: EventBus) -> None:
        self._store = store
        self._events = events
        self._state: list[tuple[object, ...]] | None = None
        self._seen: dict[int, _FollowedDocument] = {}

    def look(self) -> None:
        """Publish the changes since the last call. Raises StoreError."""
        with self._store.reading() as reader:
            state = reader.collections.last_changes()
            if state == self._state:
                return
            documents = {
                document_id: _FollowedDocument(*rest)
                for document_id, *rest in reader.documents.identities()
            }
        is_first, self._state = self._state is None, state
        before, self._seen = self._seen, documents
        if is_first:
            return
        for document_id, document in documents.items():
            old = before.get(document_id)
            if old is None:
                self._tell("added", document)
            elif (old.collection, old.path) != (document.collection, document.path):
                # If the collection was renamed, every document has another name.
                previous = old.path if old.collection == document.collection else None
                self._tell("moved", document, previous)
            elif old.hash != document.hash:
                self._tell("updated", document)
        for document_id, document in before.items():
            if document_id not in documents:
                self._tell("removed", document)
        self._events.publish(Event("synced", clock.now()))

    def _tell(
        self, kind: EventKind, document: _FollowedDocument, previous: str | None = None
    ) -> None:
        event = Event(kind, clock.now(), document.collection, document.path, previous)
        self._events.publish(event)


class ChangeListener(Loop):
    """A loop that publishes the changes of a feed from `start` on until `stop`."""

    def __init__(
        self, feed: ChangeFeed, events: EventBus, on_change: Callable[[], object] = lambda: None
    ) -> None:
        """``on_change``: called in the thread after the events of some changes."""
        self._feed = feed
        self._events = events
        self._on_change = on_change
        super().__init__(
            "qmd-listener",
            lambda: self._publish(_LISTEN_S),
            "The index cannot be followed",
            lambda problem, cause: None,  # searches report it; the next turn connects anew
            every_s=0.0,
            retry_s=(_RETRY_S, _RETRY_S),
            interrupt=feed.wake,
        )

    def start(self) -> None:
        """Changes that are committed after this call are published."""
        with suppress(QmdError):  # the first turn tries again
            self._publish(0.0)
        super().start()

    def stop(self) -> None:
        """End the loop, wait for that, and close the feed."""
        super().stop()
        self._feed.close()

    def _publish(self, timeout_s: float) -> None:
        """Publish the next changes. Raises StoreError."""
        changes = self._feed.next(timeout_s)
        for change in changes:
            self._events.publish(Event(change.kind, clock.now(), *change[1:]))
        if changes:
            self._events.publish(Event("synced", clock.now()))
            self._on_change()
