"""
Streams of server-sent events, and their end, when a server stops; replies in gzip.

The events are those of the index, and those of a turn of a conversation.
`sse_starlette`, which comes with the SDK of MCP, is not used: it sends each event by itself and its
heartbeats also between events, leaves a task behind that asks twice a second whether uvicorn ends
(`Streams` ends ours at once), and does not close an iterator whose client left before it began.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import anyio
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.agent.chat import AgentTurn
from qmd.ingest.events import EventBus


class Streams:
    """The open event streams, which end only when one side closes the connection."""

    def __init__(self) -> None:
        self._open: set[anyio.CancelScope] = set()
        self._parts: set[Streams] = set()
        self._callbacks: list[Callable[[], None]] = []
        self._closed = False

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the streams are ended, for what ends in another way."""
        self._callbacks.append(callback)

    def part(self) -> Streams:
        """Some of these streams, which can be ended without the others."""
        part = Streams()
        self._parts.add(part)
        if self._closed:
            part.close()
        return part

    def close(self) -> None:
        """End all streams, and each later one at once. Call it from the event loop only."""
        if not self._closed:
            for callback in self._callbacks:
                callback()
        self._closed = True
        for part in self._parts:
            part.close()
        for scope in tuple(self._open):
            scope.cancel()

    def add(self, scope: anyio.CancelScope) -> None:
        self._open.add(scope)
        if self._closed:
            scope.cancel()

    def discard_part(self, part: Streams) -> None:
        """End the streams of a part, which is not used any more."""
        part.close()
        self._parts.discard(part)

    def discard(self, scope: anyio.CancelScope) -> None:
        self._open.discard(scope)


class EndableStreams:
    """
    ASGI middleware that registers each event stream (the response to a GET) with `Streams`.

    A stopping server waits for open responses; an event stream would delay it to its time limit.
    """

    def __init__(self, app: ASGIApp, streams: Streams) -> None:
        self._app = app
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        unfinished = False

        async def send_and_register(message: Message) -> None:
            nonlocal unfinished
            if message["type"] == "http.response.start":
                kind = dict(message.get("headers", ())).get(b"content-type", b"")
                if kind.startswith(b"text/event-stream"):
                    unfinished = True
                    self._streams.add(cancel)
            elif not message.get("more_body", False):
                unfinished = False
            await send(message)

        try:
            with anyio.CancelScope() as cancel:
                await self._app(scope, receive, send_and_register)
        finally:
            self._streams.discard(cancel)
        if cancel.cancelled_caught and unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


# --- large replies --------------------------------------------------------------------
# To clients of the handshake eras the SDK answers each request with a stream of events, and several
# of them read an event as one line of limited length. A client must accept JSON, too, so a large
# reply goes as JSON. A reply that comes after other events stays in its stream.


#: Bytes of an event. Readers of lines stop here by default in Go (bufio) and Python (asyncio).
LARGE = 64 * 1024
_STREAM = b"text/event-stream"
_DATA = b"data: "
#: The headers of a stream that do not hold for JSON.
_OF_STREAMS = frozenset({b"content-type", b"content-length", b"x-accel-buffering"})


#: An encoding of the header Accept-Encoding with its weight, of which 0 refuses it.
_REFUSED = re.compile(r"(?:x-)?gzip\s*;\s*q=0(?:\.0*)?\s*", re.IGNORECASE)


class Compressed(GZipMiddleware):
    """That of Starlette, which takes the name of gzip for a yes, also where the weight is a no."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            encodings = ",".join(Headers(scope=scope).getlist("accept-encoding"))
            if any(_REFUSED.fullmatch(each.strip()) for each in encodings.split(",")):
                others = [each for each in scope["headers"] if each[0] != b"accept-encoding"]
                scope = {**scope, "headers": others}
        await super().__call__(scope, receive, send)


class LargeReplies:
    """ASGI middleware around the route of MCP."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        await self._app(scope, receive, _Sender(send).send if is_post else send)


class _Sender:
    """Holds back the start of a stream until its first event."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._is_complete = False

    async def send(self, message: Message) -> None:
        if self._is_complete:  # the end of the stream
            return
        if message["type"] == "http.response.start" and _is_stream(message):
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            reply = _large_reply(message.get("body", b""))
            if reply is not None:
                self._is_complete = True
                start, message = _as_json(start, reply), {**message, "body": reply}
                message["more_body"] = False
            await self._send(start)
        await self._send(message)


def _is_stream(start: Message) -> bool:
    kind: bytes = dict(start.get("headers", ())).get(b"content-type", b"")
    return kind.startswith(_STREAM)


def _large_reply(event: bytes) -> bytes | None:
    """The JSON of an event that is a large reply; None for any other event."""
    if len(event) <= LARGE:
        return None
    data = [line.removeprefix(_DATA) for line in event.splitlines() if line.startswith(_DATA)]
    if len(data) != 1 or "method" in from_json(data[0]):
        return None
    return data[0]


def _as_json(start: Message, reply: bytes) -> Message:
    headers = [pair for pair in start["headers"] if pair[0].lower() not in _OF_STREAMS]
    headers += [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(reply)).encode()),
    ]
    return {**start, "headers": headers}


T = TypeVar("T")

#: Events kept for a slow client; older ones are dropped, and ``missed`` reports their number.
MAX_WAITING = 1000

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"
_CONNECTED = b": qmd\n\n"  # shows the client that it is connected


async def index_stream(bus: EventBus, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events that are published from now on, each named after its kind, with JSON as data.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. An event ``missed`` has the number
    of events that a slow client did not get: it should load the current state again. The
    subscription ends when the iterator is closed.
    """
    with _subscribed(bus.subscribe, MAX_WAITING) as take:
        yield _CONNECTED
        while True:
            events, missed = await take(heartbeat_s)
            if missed:
                yield encoded("missed", {"missed": missed})
            yield b"".join(encoded(each.kind, each.as_dict()) for each in events) or HEARTBEAT


async def turn_stream(turn: AgentTurn, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events of a turn from the first one, until it has ended.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. A client that leaves ends its
    subscription, and not the turn.
    """
    with _subscribed(turn.subscribe) as take:
        yield _CONNECTED
        while True:
            events, _ = await take(heartbeat_s)
            yield b"".join(encoded(each.kind, each.data) for each in events) or HEARTBEAT
            if events and events[-1].kind == "ended":
                return


def encoded(name: str, value: object) -> bytes:
    """One event, with JSON as data."""
    # json.dumps writes ASCII, so no line separator of Unicode can end a field early.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


class EventResponse(StreamingResponse):
    """A stream of events, which always closes its iterator, even if the client has left."""

    def __init__(
        self, events: AsyncGenerator[bytes, None], on_close: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(events, media_type=MEDIA_TYPE)
        self.headers["cache-control"] = "no-cache"
        self._events = events
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()
            with anyio.CancelScope(shield=True):
                await self._events.aclose()


@contextmanager
def _subscribed(
    subscribe: Callable[[Callable[[T], None]], Callable[[], None]], most: int | None = None
) -> Iterator[Callable[[float], Awaitable[tuple[list[T], int]]]]:
    """
    Subscribe while the block runs. The function it gets waits for events, as many seconds as it is
    told, and returns those that have arrived and how many were dropped since its last call.

    Args:
        subscribe: Calls its argument with each event, on any thread, until what it returns is
            called.
        most: The most events that wait; None for all.
    """
    loop = asyncio.get_running_loop()
    waiting: deque[T] = deque(maxlen=most)
    dropped = 0
    arrived = asyncio.Event()

    def add(event: T) -> None:
        nonlocal dropped
        dropped += len(waiting) == most
        waiting.append(event)
        arrived.set()

    def pass_on(event: T) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server is ending
            loop.call_soon_threadsafe(add, event)

    async def take(seconds: float) -> tuple[list[T], int]:
        nonlocal dropped
        with anyio.move_on_after(seconds):
            await arrived.wait()
        arrived.clear()
        batch = list(waiting), dropped
        waiting.clear()
        dropped = 0
        return batch

    unsubscribe = subscribe(pass_on)
    try:
        yield take
    finally:
        unsubscribe()
