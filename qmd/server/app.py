"""The ASGI application: REST, MCP over Streamable HTTP, and the checks before both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.kb import KnowledgeBase
from qmd.server.access import AccessLog
from qmd.server.mcp import McpFace
from qmd.server.rest import Page, exception_handlers, rest_routes
from qmd.server.security import RequestGuard, Security, error_body, error_page, wants_page
from qmd.server.sessions import OPEN_PATH, OpenPage, Sessions

MCP_PATH = "/mcp"

MAX_SESSIONS = 1000
"""MCP sessions of the handshake eras that may be open at once; idle ones end after 30 minutes."""


def build_app(
    kb: KnowledgeBase,
    *,
    rest: bool = True,
    mcp: bool = True,
    security: Security | None = None,
    read_only: bool = False,
    face: McpFace | None = None,
    streams: Streams | None = None,
    access_log: bool = False,
) -> Starlette:
    """
    The application for an open knowledge base, which the caller closes.

    Args:
        security: None for a server that only this machine reaches, without a token.
        face: The MCP server to use, which may serve stdin and stdout as well.
        streams: Collects the standing event streams, so that the caller can end them.
        access_log: Log each request: method, path, status, time; never the query.
    """
    security = security or Security()
    sessions = Sessions()
    routes: list[BaseRoute] = []
    if rest:
        routes += rest_routes(kb, read_only=read_only)
        page = OpenPage(sessions, guarded=security.token is not None, refuse=_old_link)
        routes.append(Route(OPEN_PATH, Page(("GET", "POST"), page)))
    manager = None
    if mcp:
        face = face or McpFace(kb)
        # The SDK checks Host and Origin on its own route only, and in another shape: `RequestGuard`
        # does it for all of them.
        part = face.server.streamable_http_app(
            streamable_http_path=MCP_PATH, host="guarded", max_sessions=MAX_SESSIONS
        )
        routes += part.routes
        manager = face.server.session_manager

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if manager is None:
            yield
            return
        async with manager.run():
            yield

    middleware = [
        *([Middleware(AccessLog)] if access_log else ()),
        Middleware(RequestGuard, security=security, sessions=sessions),
        Middleware(EndableStreams, streams=streams or Streams()),
    ]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers=exception_handlers(),
    )
    app.router.redirect_slashes = False
    return app


def _old_link(request: Request) -> Response:
    detail = "This link was opened before, or is older than a minute.\n\nRun 'qmd open' again."
    if wants_page(request.scope):
        return Response(error_page(403, detail), 403, media_type="text/html")
    return Response(error_body(403, detail), 403, media_type="application/json")


class Streams:
    """The open responses that end only when one side leaves: standing event streams."""

    def __init__(self) -> None:
        self._open: set[anyio.CancelScope] = set()
        self._closed = False

    def close(self) -> None:
        """End them all, and every later one at once. Only from the event loop."""
        self._closed = True
        for scope in tuple(self._open):
            scope.cancel()

    def add(self, scope: anyio.CancelScope) -> None:
        self._open.add(scope)
        if self._closed:
            scope.cancel()

    def discard(self, scope: anyio.CancelScope) -> None:
        self._open.discard(scope)


class EndableStreams:
    """
    Registers each standing event stream (a GET answered with one) with `Streams`.

    A stopping server waits for open responses; these would delay it until its time limit.
    """

    def __init__(self, app: ASGIApp, streams: Streams) -> None:
        self._app = app
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        unfinished = False

        async def watch(message: Message) -> None:
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
                await self._app(scope, receive, watch)
        finally:
            self._streams.discard(cancel)
        if cancel.cancelled_caught and unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
