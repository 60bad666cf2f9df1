"""
Sends a large reply over MCP as JSON where the SDK sends a stream with one event.

To clients of the handshake eras the SDK answers each request with a stream of events, and several
of them read an event as one line of limited length. A client must accept both forms. A reply that
comes after other events stays in its stream.
"""

from __future__ import annotations

from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
