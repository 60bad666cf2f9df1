"""Ends event streams, which end by themselves only when one side closes the connection."""

from __future__ import annotations

from collections.abc import Callable

import anyio
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
