"""Events about the index, and the bus that delivers them to subscribers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import Any, Literal

from qmd.records import dataclass
from qmd.system import clock
from qmd.values import encode_uri

_log = logging.getLogger(__name__)

#: Documents: added, updated, moved, removed. Progress: indexing, embedding. The rest: synced
#: (the index equals the disk), problem (an error; qmd tries again).
EventKind = Literal[
    "added", "updated", "moved", "removed", "indexing", "embedding", "synced", "problem"
]


@dataclass(frozen=True, slots=True)
class Event:
    """
    One change or problem, published after the commit.

    ``path`` (and ``previous``, where a moved document was) are relative to the collection.
    ``done`` and ``total`` count files or chunks. ``at`` is ISO 8601 UTC.
    """

    kind: EventKind
    at: str
    collection: str | None = None
    path: str | None = None
    previous: str | None = None
    done: int | None = None
    total: int | None = None
    message: str | None = None

    @property
    def file(self) -> str | None:
        """``collection/path``, as hits have it."""
        return None if self.path is None else f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str | None:
        """``qmd://…`` of the document."""
        return None if self.file is None else encode_uri(self.file)

    def as_dict(self) -> dict[str, Any]:
        """The event for JSON: ``file``, ``uri`` and the fields, without those that are None."""
        values = {name: getattr(self, name) for name in type(self).__annotations__}
        values |= {"file": self.file, "uri": self.uri}
        return {name: value for name, value in values.items() if value is not None}


Callback = Callable[[Event], None]


#: Called with what has happened to a document, its path, and its old path if it was moved.
OnChange = Callable[[EventKind, str, "str | None"], None]


class EventBus:
    """
    Delivers events to all subscribers, in the order in which they are published. Thread-safe.

    Callbacks must be quick, because they run in the publishing thread, which does the indexing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callback] = {}

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call ``callback`` for all events from now on; returns a function that ends this."""
        key = object()
        with self._lock:
            self._callbacks[key] = callback

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Call all subscribers; if one fails, log that and go on."""
        with self._lock:
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            try:
                callback(event)
            except Exception as error:  # noqa: BLE001 - any exception of a subscriber is logged
                _log.error("a subscriber failed at '%s'", event.kind, exc_info=error)

    def publisher(self, collection: str) -> OnChange:
        """Make a function that publishes the changes of a collection's documents as events."""

        def publish(kind: EventKind, path: str, previous: str | None) -> None:
            self.publish(Event(kind, clock.now(), collection, path, previous))

        return publish


class ScopedEvents(EventBus):
    """Hands on the events of another bus that concern some collections."""

    def __init__(self, bus: EventBus, collections: Collection[str]) -> None:
        super().__init__()
        self._bus = bus
        self._collections = collections

    def subscribe(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """As `EventBus.subscribe`."""

        def hand_on(event: Event) -> None:
            if event.collection in self._collections:
                callback(event)

        return self._bus.subscribe(hand_on)
