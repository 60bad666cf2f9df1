"""The events of one turn: kept in order, and passed on to all who listen."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from qmd.agent.executor import Reading, ToolExecution
from qmd.agent.parser import Malformed
from qmd.engine_text import EngineText
from qmd.errors import QmdError, TransientInferenceError
from qmd.values.chats import ChatEvent, StoredTurn

Listener = Callable[[ChatEvent], None]


class Tell(Protocol):
    """Is told what happens: `EventLog.add`. docs/agent.md lists the kinds and their data."""

    def __call__(self, kind: str, /, **data: object) -> None: ...


class EventLog:
    """Thread-safe. ``ended`` is the last event; whatever comes later is dropped."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: list[ChatEvent] = []
        self._text: list[str] = []  # the pieces of text since the last other event
        self._listeners: list[Listener] = []
        self._is_ended = False

    def add(self, kind: str, /, **data: object) -> None:
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


# --- the data of some events ------------------------------------------------------------


#: The most characters of a tool's result in an event, which a person is shown.
LONGEST_SHOWN = 4_000


def finished_data(number: int, execution: ToolExecution) -> dict[str, Any]:
    """Of ``tool_finished``; ``number`` counts the calls of a turn from 1."""
    text = execution.result.text
    more = len(text) - LONGEST_SHOWN
    return {
        "call": number,
        "tool": execution.call.tool,
        "success": execution.result.success,
        "result": text if more <= 0 else f"{text[:LONGEST_SHOWN]}\n… {more:,} more characters",
        "characters": len(text),
        "duration_ms": round(execution.duration_s * 1000),
        "read": execution.result.reading.as_json(),
    }


def bad_block_data(block: Malformed) -> dict[str, Any]:
    return {"type": block.kind, "error": block.error, "block": block.source[:LONGEST_SHOWN]}


def error_data(error: QmdError) -> dict[str, Any]:
    """Of ``error``; ``phrases`` has what the message and the hint are made of."""
    texts = {"message": error.message, "hint": error.hint}
    phrases = {name: text.as_json() for name, text in texts.items() if isinstance(text, EngineText)}
    return {
        "code": error.code,
        **texts,
        "transient": isinstance(error, TransientInferenceError),
        **({"phrases": phrases} if phrases else {}),
    }


def reading_of(turn: StoredTurn) -> Reading:
    """The lines of documents that the model read in a turn that is kept."""
    read = (data.get("read") for _, data in json.loads(turn.events))
    return Reading().merge(Reading(lines) for lines in read if isinstance(lines, dict))
