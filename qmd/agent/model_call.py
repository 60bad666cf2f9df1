"""Calls the model, and lets a person end the wait for it."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from qmd.inference.llm import ChatAnswer, Event, Message
from qmd.system.cancellation import Cancellation


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


def ask(
    model: ChatModel,
    messages: Sequence[Message],
    stop: Cancellation,
    listen: Callable[[Event], None] | None = None,
    **options: Any,
) -> ChatAnswer:
    """
    Call a model, and wait for its answer until ``stop`` is cancelled.

    A thread cannot be stopped from outside, so each request has a thread of its own, which is
    left alone then: it ends with the request's next piece, or at its time limit.

    Args:
        options: Those of `ChatModel.chat`.

    Raises:
        KeyboardInterrupt: It was cancelled; the loop ends as it does at Ctrl-C.
        The errors of `ChatModel.chat`.
    """
    replies: queue.SimpleQueue[Event | ChatAnswer | BaseException] = queue.SimpleQueue()

    def hear(event: Event) -> None:
        if stop.is_cancelled:
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

    def interrupt() -> None:
        replies.put(KeyboardInterrupt())

    stop.add(interrupt)
    if stop.is_cancelled:
        interrupt()
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
        stop.remove(interrupt)
