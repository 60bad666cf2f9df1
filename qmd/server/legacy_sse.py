"""
MCP over the transport of 2024-11-05, for clients that know no other: HTTP with SSE.

A GET of `SSE_PATH` opens a stream, whose first event names the address to which the client posts
its messages; all replies are events of the stream.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any, cast

import anyio
from anyio.abc import ObjectSendStream
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from qmd.server.rest_errors import error_response

SSE_PATH = "/sse"
_MESSAGES_PATH = "/messages"
_MAX_STREAMS = 100
#: A stream with more replies than this that its client does not read is ended: each is in memory.
_MAX_UNREAD = 32
_log = logging.getLogger(__name__)


class LegacySse:
    """Serves an MCP server over this transport; all checks of access come before it."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._transport = SseServerTransport(_MESSAGES_PATH)
        self._streams: dict[anyio.CancelScope, _Replies] = {}

    @property
    def routes(self) -> list[BaseRoute]:
        return [Route(SSE_PATH, _App(self._stream)), Route(_MESSAGES_PATH, _App(self._message))]

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            refusal = error_response(405, "GET opens the stream of events.", {"allow": "GET"})
            await refusal(scope, receive, send)
            return
        if len(self._streams) >= _MAX_STREAMS:
            refusal = error_response(503, f"Too many event streams are open ({_MAX_STREAMS}).")
            await refusal(scope, receive, send)
            return
        with anyio.CancelScope() as stream:
            try:
                async with self._transport.connect_sse(scope, receive, send) as (
                    incoming,
                    outgoing,
                ):
                    replies = self._streams[stream] = _Replies(outgoing)
                    options = self._server.create_initialization_options()
                    await self._server.run(incoming, cast(Any, replies), options)
            finally:
                self._streams.pop(stream, None)

    def _end_unread(self) -> None:
        """End the streams whose clients send requests and do not read the replies."""
        for stream, replies in list(self._streams.items()):
            unread = replies.waiting
            if unread > _MAX_UNREAD:
                _log.warning(
                    "a stream of /sse was ended: its client left %s replies unread", unread
                )
                stream.cancel()

    async def _message(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._end_unread()
        session_id = Request(scope).query_params.get("session_id", "")
        # What the client writes belongs to its session, as over the transport of today.
        headers = [*scope["headers"], (b"mcp-session-id", session_id.encode("latin-1", "replace"))]
        # The stream may end while a message is on its way to it.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._transport.handle_post_message({**scope, "headers": headers}, receive, send)


class _Replies:
    """
    The stream of replies of one session.

    Attributes:
        waiting: How many replies have no room yet on the connection.
    """

    def __init__(self, stream: ObjectSendStream[Any]) -> None:
        self._stream = stream
        self.waiting = 0

    async def send(self, message: object) -> None:
        self.waiting += 1
        try:
            await self._stream.send(message)
        finally:
            self.waiting -= 1

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _Replies:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


class _App:
    """An ASGI application of a method. (Starlette takes a method itself for a request handler.)"""

    def __init__(self, run: Any) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._run(scope, receive, send)
