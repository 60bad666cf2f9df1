"""Publish the changes that other processes make in the index, as events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import QmdError
from qmd.ingest.events import Event, EventBus, EventKind
from qmd.ingest.keep.loop import Loop
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import ChangeFeed, Store

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
