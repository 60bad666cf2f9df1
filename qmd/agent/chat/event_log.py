"""The events of one turn: kept in order, and passed on to all who listen."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from qmd.agent.executor import ToolExecutor
from qmd.agent.loop import (
    Answered,
    Asking,
    BadBlock,
    Failed,
    Happening,
    LoopResult,
    ToolExecution,
    ToolStarted,
)
from qmd.agent.parser import AnswerText, ToolCall
from qmd.agent.reading import Reading
from qmd.engine_text import EngineText
from qmd.errors import QmdError, TransientInferenceError
from qmd.inference.llm import Delta, Retry
from qmd.store.sql.conversations import StoredTurn
from qmd.system import clock
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


# --- what happens in the execution loop -----------------------------------------------


LONGEST_RESULT = 4_000
"""The most characters of a tool's result in an event."""


class EventWriter:
    """
    Hears the events of an `ExecutionLoop` and writes those of the conversation.

    Args:
        calls: How many tool calls the turn had before, so that each has a number of its own.
    """

    def __init__(self, log: EventLog, executor: ToolExecutor, calls: int = 0) -> None:
        self._log = log
        self._executor = executor
        self._calls = calls
        self._running: list[tuple[ToolCall, int]] = []
        self._answer = AnswerText()

    def __call__(self, happening: Happening) -> None:
        if isinstance(happening, Asking):
            self._answer = AnswerText()
            self._log.add("asking", round=happening.iteration)
        elif isinstance(happening, Delta):
            self._write(self._answer.feed(happening.text))
        elif isinstance(happening, Retry):
            self._answer = AnswerText()
            self._log.add("discard", reason=happening.reason, pause_s=happening.pause_s)
        elif isinstance(happening, Answered):
            self._write(self._answer.rest(happening.parsed))
        elif isinstance(happening, (ToolStarted, ToolExecution)):
            self._write_call(happening)
        elif isinstance(happening, BadBlock):
            problem = happening.problem
            block = problem.source[:LONGEST_RESULT]
            self._log.add("bad_block", type=problem.kind, error=problem.error, block=block)
        elif isinstance(happening, Failed):
            write_error(self._log, happening.error)

    def _write(self, text: str) -> None:
        if text:
            self._log.add("text", text=text)

    def _write_call(self, happening: ToolStarted | ToolExecution) -> None:
        call = happening.call
        if isinstance(happening, ToolStarted):
            self._calls += 1
            self._running.append((call, self._calls))
            self._log.add(
                "tool_started",
                call=self._calls,
                tool=call.tool,
                params=dict(call.params),
                writes=self._executor.writes(call.tool),
                at=clock.now(),
            )
            return
        position = next(
            (place for place, (running, _) in enumerate(self._running) if running is call), None
        )
        if position is None:
            return
        _, number = self._running.pop(position)
        text = happening.result.text
        more = len(text) - LONGEST_RESULT
        self._log.add(
            "tool_finished",
            call=number,
            tool=call.tool,
            success=happening.result.success,
            result=text if more <= 0 else f"{text[:LONGEST_RESULT]}\n… {more:,} more characters",
            duration_ms=round(happening.duration_s * 1000),
            read=happening.result.reading.as_json(),
        )


def write_error(log: EventLog, error: QmdError) -> None:
    """The event of an error; ``phrases`` has what the message and the hint are made of."""
    texts = {"message": error.message, "hint": error.hint}
    phrases = {name: text.as_json() for name, text in texts.items() if isinstance(text, EngineText)}
    log.add(
        "error",
        code=error.code,
        **texts,
        transient=isinstance(error, TransientInferenceError),
        **({"phrases": phrases} if phrases else {}),
    )


def write_answer(log: EventLog, result: LoopResult) -> None:
    """The event of an answer, with its citations."""
    text = result.final_response
    log.add(
        "answer",
        text=text,
        citations=[citation.as_json() for citation in result.checked.citations],
        unsupported=[text[each.start : each.end] for each in result.checked.unsupported],
        cut_off=result.cut_off,
    )


def reading_of(turn: StoredTurn) -> Reading:
    """The lines of documents that the model read in a turn that is kept."""
    read = (data.get("read") for _, data in json.loads(turn.events))
    return Reading().merge(Reading(lines) for lines in read if isinstance(lines, dict))
