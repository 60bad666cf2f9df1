"""The events of one turn: kept in order, and passed on to all who listen."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from qmd.values.chats import ChatEvent

Listener = Callable[[ChatEvent], None]


class EventLog:
    """Thread-safe. ``ended`` is the last event; whatever comes later is dropped."""

    def __init__(self, earlier: Sequence[ChatEvent] = ()) -> None:
        self._lock = threading.RLock()
        self._events: list[ChatEvent] = list(earlier)
        self._text: list[str] = []  # the pieces of text since the last other event
        self._listeners: list[Listener] = []
        self._is_ended = False

    def add(self, kind: str, **data: object) -> None:
        """Add an event, and tell all listeners."""
        event = ChatEvent(kind, data)
        with self._lock:
            if self._is_ended:
                return
            self._is_ended = kind == "ended"
            if kind == "text":
                self._text.append(str(data["text"]))
            elif kind == "discard":
                self._discard()
            else:
                self._join_text()
                self._events.append(event)
            for listener in tuple(self._listeners):
                listener(event)

    def all(self) -> list[ChatEvent]:
        """All events; pieces of text are joined, and those that are void are left out."""
        with self._lock:
            self._join_text()
            return list(self._events)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """
        Call ``listener`` with all events so far, and then with each that is added.

        It must not wait for anything. Returns a function that ends the subscription.
        """
        with self._lock:
            for event in self.all():
                listener(event)
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def events(self) -> Iterator[ChatEvent]:
        """All events from the first to ``ended``, waiting for each."""
        waiting: queue.SimpleQueue[ChatEvent] = queue.SimpleQueue()
        unsubscribe = self.subscribe(waiting.put)
        try:
            while True:
                event = waiting.get()
                yield event
                if event.kind == "ended":
                    return
        finally:
            unsubscribe()

    def _join_text(self) -> None:
        if self._text:
            self._events.append(ChatEvent("text", {"text": "".join(self._text)}))
            self._text = []

    def _discard(self) -> None:
        """Remove the text of the present round."""
        self._text = []
        while self._events and self._events[-1].kind == "text":
            self._events.pop()
