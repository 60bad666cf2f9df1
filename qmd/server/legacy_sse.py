"""
MCP over the transport of 2024-11-05, for clients that know no other: HTTP with SSE.

A GET of `SSE_PATH` opens a stream, whose first event names the address to which the client posts
its messages; all replies are events of the stream.
"""

from __future__ import annotations

import contextlib
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from qmd.server.rest_errors import error_response

SSE_PATH = "/sse"
_MESSAGES_PATH = "/messages"
_MAX_STREAMS = 100


class LegacySse:
    """Serves an MCP server over this transport; all checks of access come before it."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._transport = SseServerTransport(_MESSAGES_PATH)
        self._streams = 0

    @property
    def routes(self) -> list[BaseRoute]:
        return [Route(SSE_PATH, _App(self._stream)), Route(_MESSAGES_PATH, _App(self._message))]

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            refusal = error_response(405, "GET opens the stream of events.", {"allow": "GET"})
            await refusal(scope, receive, send)
            return
        if self._streams >= _MAX_STREAMS:
            refusal = error_response(503, f"Too many event streams are open ({self._streams}).")
            await refusal(scope, receive, send)
            return
        self._streams += 1
        try:
            async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                options = self._server.create_initialization_options()
                await self._server.run(incoming, outgoing, options)
        finally:
            self._streams -= 1

    async def _message(self, scope: Scope, receive: Receive, send: Send) -> None:
        session_id = Request(scope).query_params.get("session_id", "")
        # What the client writes belongs to its session, as over the transport of today.
        headers = [*scope["headers"], (b"mcp-session-id", session_id.encode("latin-1", "replace"))]
        # The stream may end while a message is on its way to it.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._transport.handle_post_message({**scope, "headers": headers}, receive, send)


class _App:
    """An ASGI application of a method. (Starlette takes a method itself for a request handler.)"""

    def __init__(self, run: Any) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._run(scope, receive, send)
