"""Ends event streams, which end by themselves only when one side closes the connection."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send


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
