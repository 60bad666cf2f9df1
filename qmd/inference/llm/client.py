"""
Conversations with a language model: answers as they are written, tried again when that helps.

`ModelEndpoint` does the transport. Trying again is done here, where the waiting can be shown,
bounded and tested; so is reading, because what a broken or hostile server sends must never be
more than an error.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from qmd.engine_text import engine_text
from qmd.errors import TransientInferenceError
from qmd.inference.llm import endpoint
from qmd.inference.llm.answer import Assembly, ChatAnswer, Delta, Event, Message, Retry, usage_of
from qmd.inference.llm.endpoint import ModelEndpoint, parsed_json
from qmd.inference.llm.settings import LlmSettings
from qmd.system.http_client import HttpReply

#: How often a request is sent again; the pauses below then take seven seconds at most.
RETRIES = 3

FIRST_PAUSE_S = 1.0
#: A server that asks for a longer pause is not asked again.
LONGEST_PAUSE_S = 60.0

_MAX_BYTES = 64 << 20  # of an answer that comes in one piece
_MAX_LINE_BYTES = 16 << 20  # of one that is streamed


class LlmClient:
    """
    Asks one server; each request has a new connection. Thread-safe.

    What is worth another try (429, 5xx, time-outs, a lost connection) is tried again with
    growing pauses; a server's Retry-After is kept to.

    Args:
        retries: How often at most.
        wait: Called with the seconds to pause.
        clock: Monotonic seconds.
        jitter: A number from 0 to 1 that spreads the pauses of several clients.
    """

    def __init__(
        self,
        settings: LlmSettings,
        *,
        retries: int = RETRIES,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._endpoint = ModelEndpoint(settings)
        self._retries = retries
        self._wait = wait
        self._clock = clock
        self._jitter = jitter

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        budget_s: float | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatAnswer:
        """
        The model's next turn.

        Args:
            listen: Hears the text as it comes, and of each new try; without it the answer is
                fetched in one piece.
            budget_s: For all tries together, pauses included.
            tools: The functions that the model may call natively, as the API of chat
                completions describes them.

        Raises:
            NativeCallsRefusedError: The server takes no ``tools``.
            ConfigError: The server wants a key, and there is none; or the proxy of the
                environment cannot be used.
            TransientInferenceError: No answer, after all tries.
            InferenceError: The server refuses, or does not speak this language.
        """
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [_sendable(message) for message in messages],
            "stream": listen is not None,
        }
        if tools:
            body["tools"] = list(tools)

        end = None if budget_s is None else self._clock() + budget_s
        attempt = 1
        while True:
            try:
                return self._answer(body, listen, end)
            except TransientInferenceError as error:
                pause = self._pause(error, attempt)
                if pause is None or (end is not None and self._clock() + pause >= end):
                    raise
                reason = str(error)
            if listen is not None:
                listen(Retry(reason, pause, attempt))
            self._wait(pause)
            attempt += 1

    def _pause(self, error: TransientInferenceError, attempt: int) -> float | None:
        """Seconds until the next try; None if there is to be none."""
        if attempt > self._retries:
            return None
        retry_after_s = error.retry_after_s or 0.0
        if retry_after_s > LONGEST_PAUSE_S:
            return None
        growing_s: float = FIRST_PAUSE_S * 2 ** (attempt - 1) * (1 + self._jitter()) / 2
        return min(max(retry_after_s, growing_s), LONGEST_PAUSE_S)

    def _answer(
        self, body: Mapping[str, Any], listen: Callable[[Event], None] | None, end: float | None
    ) -> ChatAnswer:
        """One try. Some servers stream without a request to, others do not in spite of one."""
        left_s = None if end is None else end - self._clock()
        if left_s is not None and left_s <= 0:
            raise endpoint.timed_out(self.settings, self.settings.timeout_s)
        assembly = Assembly(self.settings.key, offers_tools="tools" in body)

        def show(text: str) -> None:
            if text and listen is not None:
                listen(Delta(text))

        with self._endpoint.open(
            "/chat/completions", body, wait_s=self.settings.timeout_s, total_s=left_s
        ) as reply:
            if "event-stream" in reply.headers.get("content-type", "").lower():
                self._read_stream(reply, assembly, show)
            else:
                show(self._read_at_once(reply, assembly))
        show(assembly.end())
        return assembly.answer()

    def _read_stream(
        self, reply: HttpReply, assembly: Assembly, show: Callable[[str], None]
    ) -> None:
        """Raises TransientInferenceError if the stream ends before the answer does."""
        for chunk in _chunks(self.settings, reply.pieces()):
            if chunk is None:
                return
            assembly.usage = usage_of(chunk) or assembly.usage
            choice = _first_choice(chunk)
            if choice is not None:
                size_before = assembly.size
                text = assembly.add(choice, "delta")
                if assembly.size > size_before:  # empty pieces may come for ever
                    reply.progress()
                show(text)
        if assembly.finish_reason is None:
            raise endpoint.broke_off(self.settings)

    def _read_at_once(self, reply: HttpReply, assembly: Assembly) -> str:
        body = bytearray()
        for piece in reply.pieces():
            body += piece
            if not piece.isspace():  # with blank lines some servers keep a connection alive
                reply.progress()
            if len(body) > _MAX_BYTES:
                raise endpoint.not_an_answer(self.settings, f"more than {_MAX_BYTES >> 20} MB", "")
        completion = _json_object(self.settings, bytes(body))
        assembly.usage = usage_of(completion)
        choice = _first_choice(completion)
        if choice is not None:
            return assembly.add(choice, "message")
        if completion.get("error"):
            message = endpoint.server_words(completion, self.settings.key)
            raise TransientInferenceError(
                f"{self.settings.url} answered with an error: {message}",
                hint="Try again.",
                quoted=message,
            )
        raise TransientInferenceError(
            f"{self.settings.url} answered without an answer (no choices).", hint="Try again."
        )


def _first_choice(completion: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _sendable(message: Message) -> dict[str, Any]:
    """A message as the API of chat completions takes it."""
    sent: dict[str, Any] = {"role": message.role, "content": _without_halves(message.content)}
    if message.calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _without_halves(call.arguments)},
            }
            for call in message.calls
        ]
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def _without_halves(text: str) -> str:
    """Half a surrogate pair cannot be sent."""
    return text.encode("utf-8", "replace").decode()


# --- the chunks of an answer, as server-sent events ---------------------------------------


def _chunks(settings: LlmSettings, pieces: Iterable[bytes]) -> Iterator[Mapping[str, Any] | None]:
    """
    The data of each event; None for the one that ends the stream.

    Raises:
        TransientInferenceError: The server reports an error in the middle.
        InferenceError: An event holds no JSON object, or a line has no end.
    """
    for line in _lines(settings, pieces):
        if not line.startswith(b"data:"):
            continue  # a comment, which keeps the connection alive, or an event's name
        data = line[len(b"data:") :].strip()
        if data == b"[DONE]":
            yield None
            return
        if data:
            chunk = _json_object(settings, data)
            if chunk.get("error"):
                message = endpoint.server_words(chunk, settings.key)
                raise TransientInferenceError(
                    engine_text(
                        "{url} gave up in the middle of the answer: {message}",
                        url=settings.url,
                        message=message,
                    ),
                    hint="Try again.",
                    quoted=message,
                )
            yield chunk


def _json_object(settings: LlmSettings, data: bytes) -> Mapping[str, Any]:
    """The JSON object in these bytes. Raises InferenceError."""
    value = parsed_json(settings, data)
    if not isinstance(value, Mapping):
        raise endpoint.not_an_answer(settings, "no JSON object", "")
    return value


def _lines(settings: LlmSettings, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as they come; however they are cut into pieces, each byte is looked at once."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        *complete, rest = piece.replace(b"\r", b"\n").split(b"\n")
        for line in complete:
            yield b"".join([*begun, line])
            begun.clear()
            size = 0
        begun.append(rest)
        size += len(rest)
        if size > _MAX_LINE_BYTES:
            raise endpoint.not_an_answer(settings, "a line without end", "")
    yield b"".join(begun)
