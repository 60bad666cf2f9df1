"""Builds the ASGI application: REST, MCP, the page, and the checks before all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.agent.chat import Chats
from qmd.kb import KnowledgeBase
from qmd.server.access import AccessLog
from qmd.server.activity import Activity
from qmd.server.large_replies import LargeReplies
from qmd.server.legacy_sse import LegacySse
from qmd.server.mcp import McpFace
from qmd.server.metrics import METRICS_PATH, CountRequests, Metrics, RequestCounts
from qmd.server.page import page_routes
from qmd.server.page.site import Site
from qmd.server.rest import Page, exception_handlers, rest_routes
from qmd.server.rest_errors import Handler
from qmd.server.security import RequestGuard, Security, error_body, error_page, wants_page
from qmd.server.sessions import OPEN_PATH, OpenPage, Sessions

MCP_PATH = "/mcp"

MAX_SESSIONS = 1000
"""MCP sessions of the handshake eras that may be open at once; idle ones end after 30 minutes."""


def build_app(
    kb: KnowledgeBase,
    *,
    mcp: bool = True,
    security: Security | None = None,
    read_only: bool = False,
    face: McpFace | None = None,
    streams: Streams | None = None,
    access_log: bool = False,
    chats: Chats | None = None,
    editor: str | None = None,
    legacy_sse: bool = False,
) -> Starlette:
    """
    Build the application for an open knowledge base, which the caller closes.

    Args:
        security: The rules for requests; None for those of a server on this machine alone,
            without a token.
        face: The MCP server to use, which may also serve stdin and stdout; None for a new one.
        streams: Collects the open event streams, so that the caller can end them.
        access_log: Log each request: method, path, status, time; never the query.
        chats: The conversations with the agent, which the caller ends; None for new ones, which
            end with the application.
        editor: The setting; browsers of this machine get links that open notes in it.
        legacy_sse: Serve MCP over the transport of 2024-11-05, too.
    """
    security = security or Security()
    sessions = Sessions()
    routes: list[BaseRoute] = []
    if mcp:
        face = face or McpFace(kb)
    activity = face.activity if face else Activity()
    chats = chats or Chats(kb, may_write=not read_only)
    site = Site(
        kb,
        read_only=read_only,
        mcp_path=MCP_PATH if mcp else None,
        activity=activity,
        chats=chats,
        editor=editor,
    )
    routes += rest_routes(kb, read_only=read_only, activity=activity, chats=chats)
    routes += page_routes(site)
    counts = RequestCounts()
    metrics = Metrics(kb, counts, activity)
    routes.append(Route(METRICS_PATH, Page(("GET", "HEAD"), metrics.answer)))
    link = OpenPage(sessions, guarded=security.token is not None, refuse=_refuse_old_link)
    routes.append(Route(OPEN_PATH, Page(("GET", "POST"), link)))
    manager = None
    if mcp and face:
        # The SDK checks Host and Origin on its route only, and its errors have another shape.
        # `RequestGuard` checks them on all routes.
        mcp_app = face.server.streamable_http_app(
            streamable_http_path=MCP_PATH, host="guarded", max_sessions=MAX_SESSIONS
        )
        routes += [Route(MCP_PATH, LargeReplies(route.app)) for route in _routes_of(mcp_app)]
        if legacy_sse:
            routes += LegacySse(face.server).routes
        manager = face.server.session_manager

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            if manager is None:
                yield
            else:
                async with manager.run():
                    yield
        finally:
            await anyio.to_thread.run_sync(site.jobs.stop)
            await anyio.to_thread.run_sync(chats.close)

    middleware = [
        Middleware(CountRequests, counts=counts),
        *([Middleware(AccessLog)] if access_log else ()),
        Middleware(RequestGuard, security=security, sessions=sessions),
        Middleware(EndableStreams, streams=streams or Streams()),
    ]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={**exception_handlers(), HTTPException: _http_error_for(site)},
    )
    app.router.redirect_slashes = False
    return app


def _routes_of(app: Starlette) -> list[Route]:
    return [route for route in app.routes if isinstance(route, Route)]


def _http_error_for(site: Site) -> Handler:
    """Handles an unknown address: a browser that loads a page gets a page."""
    answer_with_json = exception_handlers()[HTTPException]

    async def answer(request: Request, error: Exception) -> Response:
        if wants_page(request.scope):
            return site.error(request, error)
        return await answer_with_json(request, error)

    return answer


def _refuse_old_link(request: Request) -> Response:
    detail = "This link was opened before, or is older than a minute.\n\nRun 'qmd open' again."
    if wants_page(request.scope):
        return Response(error_page(403, detail), 403, media_type="text/html")
    return Response(error_body(403, detail), 403, media_type="application/json")


class Streams:
    """The open event streams, which end only when one side closes the connection."""

    def __init__(self) -> None:
        self._open: set[anyio.CancelScope] = set()
        self._closed = False

    def close(self) -> None:
        """End all streams, and each later one at once. Call it from the event loop only."""
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
