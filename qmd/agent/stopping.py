"""Lets a person stop a run while the model is waited for."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from qmd.inference.llm import ChatAnswer, Event, Message


class ChatModel(Protocol):
    """A language model: `qmd.inference.llm.LlmClient`, or the fake model of a test."""

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        budget_s: float | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatAnswer:
        """
        Answer a conversation.

        Args:
            listen: Called with each event of the answer as it arrives.
            budget_s: The longest time for the whole answer, in seconds.
            tools: The functions that the model may call natively; left out for none.

        Raises:
            NativeCallsRefusedError: The server takes no ``tools``.
            QmdError: There is no answer, or not within ``budget_s``.
        """
        ...


class StopSignal:
    """Set once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.is_set = False

    def set(self) -> None:
        with self._lock:
            if self.is_set:
                return
            self.is_set = True
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> Callable[[], None]:
        """
        Call ``callback`` when the signal is set, or at once if it is already.

        Returns a function that takes the callback back.
        """
        with self._lock:
            if not self.is_set:
                self._callbacks.append(callback)
                return lambda: self._remove(callback)
        callback()
        return lambda: None

    def _remove(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def ask(
    model: ChatModel,
    messages: Sequence[Message],
    stop: StopSignal,
    listen: Callable[[Event], None] | None = None,
    **options: Any,
) -> ChatAnswer:
    """
    Call a model, and wait for its answer until ``stop`` is set.

    A thread cannot be stopped from outside, so each request has a thread of its own, which is
    left alone then: it ends with the request's next piece, or at its time limit.

    Args:
        options: Those of `ChatModel.chat`.

    Raises:
        KeyboardInterrupt: The signal was set; the loop ends as it does at Ctrl-C.
        The errors of `ChatModel.chat`.
    """
    replies: queue.SimpleQueue[Event | ChatAnswer | BaseException] = queue.SimpleQueue()

    def hear(event: Event) -> None:
        if stop.is_set:
            raise KeyboardInterrupt
        replies.put(event)

    def request() -> None:
        try:
            hearing = None if listen is None else hear
            replies.put(model.chat(messages, listen=hearing, **options))
        except BaseException as error:  # noqa: BLE001 - raised below
            replies.put(error)

    context = contextvars.copy_context()
    threading.Thread(
        target=context.run, args=(request,), name="qmd-chat-request", daemon=True
    ).start()
    forget = stop.on_set(lambda: replies.put(KeyboardInterrupt()))
    try:
        while True:
            reply = replies.get()
            if isinstance(reply, BaseException):
                raise reply
            if isinstance(reply, ChatAnswer):
                return reply
            if listen is not None:
                listen(reply)
    finally:
        forget()
