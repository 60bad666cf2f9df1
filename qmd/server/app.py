"""Builds the ASGI application: REST, MCP, the page, and the checks before all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from qmd.agent.chat import Chats
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.server.activity import Activity
from qmd.server.endpoints.definition import RestError
from qmd.server.failures import failure_of, wants_page
from qmd.server.logs import AccessLog
from qmd.server.mcp import McpFace
from qmd.server.metrics import METRICS_PATH, CountRequests, Metrics, RequestCounts
from qmd.server.oauth import ClientTokens, OauthOptions
from qmd.server.page import page_routes
from qmd.server.page.site import Site
from qmd.server.rest import Page, rest_routes
from qmd.server.scoped_apps import ScopedApps
from qmd.server.security import RequestGuard, Security
from qmd.server.sessions import OPEN_PATH, Sessions, open_page
from qmd.server.streams import EndableStreams, LargeReplies, Streams
from qmd.tools.toolsets import scoped
from qmd.values.access import AccessScope

Handler = Callable[[Request, Exception], Awaitable[Response]]

MCP_PATH = "/mcp"

MAX_SESSIONS = 1000
"""MCP sessions of the handshake eras that may be open at once; idle ones end after 30 minutes."""


def build_app(
    kb: KnowledgeBase,
    *,
    mcp: bool = True,
    security: Security | None = None,
    oauth: OauthOptions | None = None,
    read_only: bool = False,
    face: McpFace | None = None,
    streams: Streams | None = None,
    access_log: bool = False,
    chats: Chats | None = None,
    editor: str | None = None,
) -> Starlette:
    """
    Build the application for an open knowledge base, which the caller closes.

    Args:
        security: The rules for requests; None for those of a server on this machine alone,
            without a token.
        oauth: Who else issues tokens; None for nobody.
        face: The MCP server to use, which may also serve stdin and stdout; None for a new one.
        streams: Collects the open event streams, so that the caller can end them.
        access_log: Log each request: method, path, status, time; never the query.
        chats: The conversations with the agent, which the caller ends; None for new ones, which
            end with the application.
        editor: The setting; browsers of this machine get links that open notes in it.
    """
    security = security or Security()
    streams = streams or Streams()
    tokens = ClientTokens(kb, oauth)
    sessions = Sessions(security.token, tokens.find_scope)
    face = (face or McpFace(kb)) if mcp else None
    faces = _Faces(
        kb,
        face,
        read_only=read_only,
        chats=chats,
        editor=editor,
        streams=streams,
        sessions=sessions,
    )
    faces.routes.append(Route(OPEN_PATH, Page(("GET", "POST"), open_page(sessions))))
    if oauth is not None:
        metadata = Page(("GET", "HEAD"), tokens.metadata)
        faces.routes += [Route(path, metadata) for path in sorted(oauth.metadata_paths)]
        security = replace(
            security, metadata_url=oauth.metadata_url, metadata_paths=oauth.metadata_paths
        )

    def scoped_app(scope: AccessScope, streams: Streams) -> Starlette:
        part = ScopedKnowledgeBase(kb, scope)
        is_closed = read_only or not scope.write
        tools = None if face is None else scoped(face.selection(read_only=is_closed))
        part_face = None if tools is None else McpFace(part, tools, plain_text=face_is_plain)
        if part_face is not None:
            streams.call_at_end(part_face.subscriptions.close)
        return _Faces(
            part,
            part_face,
            read_only=is_closed,
            toolsets=() if tools is None else tools.toolsets,
            streams=streams,
            sessions=sessions,
        ).app()

    face_is_plain = face is not None and face.plain_text
    scoped_apps = ScopedApps(scoped_app, tokens.is_valid, streams)
    middleware = [
        *([Middleware(AccessLog)] if access_log else ()),
        Middleware(
            RequestGuard,
            security=security,
            sessions=sessions,
            find_scope=tokens.find_scope,
        ),
        Middleware(scoped_apps.middleware),
    ]
    return faces.app(middleware, running=scoped_apps.running)


class _Faces:
    """
    All faces of one knowledge base: REST, MCP, the page and the figures.

    Attributes:
        routes: The routes of all faces.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        face: McpFace | None,
        *,
        read_only: bool,
        streams: Streams,
        toolsets: Sequence[str] = (),
        chats: Chats | None = None,
        editor: str | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        activity = face.activity if face else Activity()
        self._chats = chats or Chats(kb, toolsets=toolsets, may_write=not read_only)
        self._streams = streams
        self._counts = RequestCounts()
        self._site = Site(
            kb,
            read_only=read_only,
            mcp_path=MCP_PATH if face else None,
            activity=activity,
            chats=self._chats,
            editor=editor,
            sessions=sessions,
        )
        metrics = Metrics(kb, self._counts, activity)
        self._manager = None
        self.routes: list[BaseRoute] = [
            *rest_routes(kb, read_only=read_only, activity=activity, chats=self._chats),
            *page_routes(self._site),
            Route(METRICS_PATH, Page(("GET", "HEAD"), metrics.answer)),
        ]
        if face is not None:
            # The SDK checks Host and Origin on its route only, and its errors have another shape.
            # `RequestGuard` checks them on all routes.
            mcp_app = face.server.streamable_http_app(
                streamable_http_path=MCP_PATH, host="guarded", max_sessions=MAX_SESSIONS
            )
            self.routes += [Route(MCP_PATH, LargeReplies(each.app)) for each in _routes_of(mcp_app)]
            self._manager = face.server.session_manager

    def app(
        self,
        middleware: Sequence[Middleware] = (),
        *,
        running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> Starlette:
        """
        The application; ``middleware`` sees each request first.

        Args:
            running: Entered while the application runs.
        """
        app = Starlette(
            routes=self.routes,
            middleware=[
                Middleware(CountRequests, counts=self._counts),
                *middleware,
                Middleware(EndableStreams, streams=self._streams),
            ],
            lifespan=lambda app: self._lifespan(running),
            exception_handlers=exception_handlers(self._site.error),
        )
        app.router.redirect_slashes = False
        return app

    @asynccontextmanager
    async def _lifespan(
        self, running: Callable[[], AbstractAsyncContextManager[None]]
    ) -> AsyncIterator[None]:
        try:
            async with nullcontext() if self._manager is None else self._manager.run(), running():
                yield
        finally:
            await anyio.to_thread.run_sync(self._site.jobs.stop)
            await anyio.to_thread.run_sync(self._chats.close)


def _routes_of(app: Starlette) -> list[Route]:
    return [route for route in app.routes if isinstance(route, Route)]


def exception_handlers(
    show: Callable[[Request, Exception], Response] | None = None,
) -> dict[int | type[Exception], Handler]:
    """What answers errors outside of the routes; ``show`` makes a page, for a browser."""

    async def answer(_: Request, error: Exception) -> Response:
        return failure_of(error).response()

    async def answer_http(request: Request, error: Exception) -> Response:
        if show is not None and wants_page(request.scope):
            return show(request, error)
        failure = failure_of(error)
        if failure.status == 404:
            detail = f"Not found: {request.url.path}. /openapi.json lists the endpoints."
            failure = replace(failure, detail=detail)
        elif failure.status == 405:
            detail = f"Method not allowed: {request.method} {request.url.path}"
            failure = replace(failure, detail=detail)
        return failure.response()

    return {
        HTTPException: answer_http,
        QmdError: answer,
        RestError: answer,
        Exception: answer,
    }
