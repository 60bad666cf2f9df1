"""Publish as events what another process changes in the index, by comparing once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from qmd.ingest.events import Event, EventBus, EventKind
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import Store


class _FollowedDocument(NamedTuple):
    collection: str
    path: str
    hash: str


class IndexFollower:
    """
    For a process that does not hold the lock. It compares also while nobody has subscribed, so that
    the first change behind a subscription is noticed.

    What this process stores itself is published twice: at once, and by the comparison.
    """

    def __init__(self, store: Store, events: EventBus) -> None:
        self._store = store
        self._events = events
        self._state: list[tuple[object, ...]] | None = None
        self._seen: dict[int, _FollowedDocument] = {}

    def look(self) -> None:
        """Publish what has changed since the last look. Raises StoreError."""
        with self._store.reading() as reader:
            state = reader.collections.last_changes()
            if state == self._state:
                return
            now = {
                number: _FollowedDocument(*rest) for number, *rest in reader.documents.identities()
            }
        is_first, self._state = self._state is None, state
        before, self._seen = self._seen, now
        if is_first:
            return
        for number, document in now.items():
            old = before.get(number)
            if old is None:
                self._tell("added", document)
            elif (old.collection, old.path) != (document.collection, document.path):
                # Of a renamed collection every document has another name.
                previous = old.path if old.collection == document.collection else None
                self._tell("moved", document, previous)
            elif old.hash != document.hash:
                self._tell("updated", document)
        for number, document in before.items():
            if number not in now:
                self._tell("removed", document)
        self._events.publish(Event("synced", clock.now()))

    def _tell(
        self, kind: EventKind, document: _FollowedDocument, previous: str | None = None
    ) -> None:
        event = Event(kind, clock.now(), document.collection, document.path, previous)
        self._events.publish(event)
