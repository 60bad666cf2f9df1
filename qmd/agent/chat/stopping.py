"""Lets a person stop a turn while the model is waited for."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Sequence

from qmd.agent.loop import ChatModel
from qmd.inference.llm import ChatAnswer, Event, Message
from qmd.system.cancellation import Cancellation


class StopSignal:
    """Set once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.is_set = False
        self.cancellation = Cancellation()  # of the tools that read

    def set(self) -> None:
        with self._lock:
            if self.is_set:
                return
            self.is_set = True
            callbacks = tuple(self._callbacks)
        self.cancellation.cancel()
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


class StoppableModel:
    """
    A model that is not waited for any longer when a signal is set.

    A thread cannot be stopped from outside, so each request has a thread of its own, which is
    left alone then: it ends with the request's next piece, or at its time limit.

    Args:
        heard: Called with the messages of each request before it is sent.
    """

    def __init__(
        self,
        model: ChatModel,
        stop: StopSignal,
        heard: Callable[[Sequence[Message]], None] = lambda _: None,
    ) -> None:
        self._model = model
        self._stop = stop
        self._heard = heard

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        budget_s: float | None = None,
    ) -> ChatAnswer:
        """
        As `ChatModel.chat`.

        Raises:
            KeyboardInterrupt: The signal was set; the loop ends as it does at Ctrl-C.
        """
        self._heard(messages)
        replies: queue.SimpleQueue[Event | ChatAnswer | BaseException] = queue.SimpleQueue()

        def hear(event: Event) -> None:
            if self._stop.is_set:
                raise KeyboardInterrupt
            replies.put(event)

        def request() -> None:
            try:
                hearing = None if listen is None else hear
                replies.put(self._model.chat(messages, listen=hearing, budget_s=budget_s))
            except BaseException as error:  # noqa: BLE001 - raised below
                replies.put(error)

        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(request,), name="qmd-chat-request", daemon=True
        ).start()
        forget = self._stop.on_set(lambda: replies.put(KeyboardInterrupt()))
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
