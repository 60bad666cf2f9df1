"""
Builds the ASGI application, and one for each scope: REST, MCP, the page, and all checks.

The requests of clients with a scope are answered by an application for each scope. It has all
faces, and only the part of the knowledge base that the scope opens. So nothing that a face keeps
(MCP sessions, subscriptions, conversations, figures) can reach a client of another scope.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from qmd import server
from qmd.agent.chat import Chats
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.server.activity import METRICS_PATH, CountRequests, Metrics, RequestCounts
from qmd.server.endpoints.definition import FILE_PATH, RestError
from qmd.server.failures import AnswerEnded, failure_of, wants_page
from qmd.server.jobs import Jobs
from qmd.server.late_mcp import MCP_PATH, LateMcp
from qmd.server.oauth import ClientTokens, OauthOptions
from qmd.server.rest import Page, rest_routes
from qmd.server.security import ACCESS, RequestGuard, Security
from qmd.server.sessions import OPEN_PATH, Sessions, open_page
from qmd.server.streams import EndableStreams, LargeReplies, Streams
from qmd.tools.toolsets import scoped, withholding
from qmd.values.access import AccessScope

if TYPE_CHECKING:
    from qmd.server.page import Site

Handler = Callable[[Request, Exception], Awaitable[Response]]


def build_app(
    kb: KnowledgeBase,
    *,
    security: Security | None = None,
    oauth: OauthOptions | None = None,
    read_only: bool = False,
    face: LateMcp | None = None,
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
    face = face or LateMcp(kb)
    routes = [Route(OPEN_PATH, Page(("GET", "POST"), open_page(sessions)))]
    if oauth is not None:
        metadata = Page(("GET", "HEAD"), tokens.metadata)
        routes += [Route(path, metadata) for path in sorted(oauth.metadata_paths)]
        security = replace(
            security, metadata_url=oauth.metadata_url, metadata_paths=oauth.metadata_paths
        )

    def scoped_app(scope: AccessScope, streams: Streams) -> Starlette:
        part = ScopedKnowledgeBase(kb, scope)
        is_closed = read_only or not scope.write
        tools = scoped(withholding(face.selection) if is_closed else face.selection)
        part_face = LateMcp(part, tools, plain_text=face.plain_text)
        streams.call_at_end(part_face.close_subscriptions)
        chats = Chats(part, toolsets=tools.toolsets, may_write=not is_closed)
        return _app(part, part_face, chats, read_only=is_closed, streams=streams, sessions=sessions)

    scoped_apps = ScopedApps(scoped_app, tokens.is_valid, streams)
    return _app(
        kb,
        face,
        chats or Chats(kb, may_write=not read_only),
        read_only=read_only,
        streams=streams,
        sessions=sessions,
        editor=editor,
        access_log=access_log,
        routes=routes,
        middleware=[
            Middleware(AnswerEnded),
            Middleware(RequestGuard, security=security, sessions=sessions),
            Middleware(scoped_apps.middleware),
        ],
        running=scoped_apps.running,
    )


def _app(
    kb: KnowledgeBase,
    face: LateMcp,
    chats: Chats,
    *,
    read_only: bool,
    streams: Streams,
    sessions: Sessions,
    editor: str | None = None,
    access_log: bool = False,
    routes: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Starlette:
    """
    All faces of one knowledge base: REST, MCP, the page and the figures.

    Args:
        routes: Those that it has besides.
        middleware: Sees each request first.
        running: Entered while the application runs.
    """
    counts = RequestCounts()
    jobs = Jobs(kb)
    page = LatePage(
        lambda: server.page.Site(
            kb,
            read_only=read_only,
            activity=face.activity,
            chats=chats,
            jobs=jobs,
            editor=editor,
            sessions=sessions,
        )
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            async with face.running(), running():
                yield
        finally:
            await anyio.to_thread.run_sync(jobs.stop)
            await anyio.to_thread.run_sync(chats.close)

    app = Starlette(
        routes=[
            *rest_routes(kb, read_only=read_only, activity=face.activity, chats=chats),
            Route(METRICS_PATH, Page(("GET", "HEAD"), Metrics(kb, counts, face.activity).answer)),
            Route(MCP_PATH, LargeReplies(face)),
            *routes,
            Route(f"/{{file:{FILE_PATH}}}", page),
        ],
        middleware=[
            Middleware(CountRequests, counts=counts, is_logged=access_log),
            *middleware,
            Middleware(EndableStreams, streams=streams),
        ],
        lifespan=lifespan,
        exception_handlers=exception_handlers(page.error),
    )
    app.router.redirect_slashes = False
    return app


class LatePage:
    """
    The route after all others; the first request that no other route takes puts the page there.

    Templates, HTML, formulas and mail take 15 MB, which a server without readers in a browser
    saves.

    Args:
        make: Makes what the views share.
    """

    def __init__(self, make: Callable[[], Site]) -> None:
        self._make = make
        self._site: Site | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        routes: list[BaseRoute] = scope["app"].routes
        page_routes = await anyio.to_thread.run_sync(self._routes)
        if getattr(routes[-1], "endpoint", None) is self:
            routes[-1:] = page_routes
        scope["path_params"] = {}
        await scope["app"].router(scope, receive, send)

    def _routes(self) -> list[BaseRoute]:
        return server.page.page_routes(self.site)

    @property
    def site(self) -> Site:
        """What the views share, made now if it was not."""
        with self._lock:
            if self._site is None:
                self._site = self._make()
            return self._site

    def error(self, request: Request, error: Exception) -> Response:
        """The page that shows an error."""
        return self.site.error(request, error)


def exception_handlers(
    show: Callable[[Request, Exception], Response] | None = None,
) -> dict[int | type[Exception], Handler]:
    """What answers errors outside of the routes; ``show`` makes a page, for a browser."""

    async def answer(request: Request, error: Exception) -> Response:
        return failure_of(error).response(as_page=wants_page(request.scope))

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


#: The most applications that are kept while no request uses them. Those used least recently end,
#: and with them their MCP sessions.
MAX_APPS = 64

#: Seconds between two looks whether the tokens of open streams are still valid.
RECHECK_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _RunningApp:
    app: Starlette
    streams: Streams
    stop: anyio.Event = field(default_factory=anyio.Event)
    ready: anyio.Event = field(default_factory=anyio.Event)
    requests: int = 0


class ScopedApps:
    """
    The applications of all scopes that are in use. For one event loop.

    Args:
        build: Makes the application of a scope, whose event streams are in the given object.
        is_valid: Whether a scope is still open.
        streams: The event streams of the server.
    """

    def __init__(
        self,
        build: Callable[[AccessScope, Streams], Starlette],
        is_valid: Callable[[AccessScope], Awaitable[bool]],
        streams: Streams,
    ) -> None:
        self._build = build
        self._is_valid = is_valid
        self._streams = streams
        self._apps: dict[AccessScope, _RunningApp] = {}  # the one that was used last comes last
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs, requests can be answered; at its end all applications end."""
        looking = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._end_closed_scopes, looking)
            try:
                yield
            finally:
                self._tasks = None
                for access in tuple(self._apps):
                    self._end(access)
                looking.cancel()

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """An application that hands requests of clients without a scope to ``app``."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            access = scope.get("state", {}).get(ACCESS)
            if access is None or scope["type"] != "http":
                await app(scope, receive, send)
            else:
                await self._answer(access, scope, receive, send)

        return answer

    async def _answer(
        self, access: AccessScope, scope: Scope, receive: Receive, send: Send
    ) -> None:
        running = self._apps.pop(access, None) or self._start(access)
        self._apps[access] = running
        running.requests += 1
        try:
            await running.ready.wait()
            await running.app(scope, receive, send)
        finally:
            running.requests -= 1
            self._end_surplus()

    def _start(self, access: AccessScope) -> _RunningApp:
        if self._tasks is None:
            raise RuntimeError("the application does not run")
        streams = self._streams.part()
        running = _RunningApp(self._build(access, streams), streams)
        self._tasks.start_soon(self._run, running, access)
        return running

    async def _run(self, running: _RunningApp, access: AccessScope) -> None:
        """Run the lifespan of an application, in a task of its own as its parts demand."""
        app = running.app
        try:
            async with app.router.lifespan_context(app):
                running.ready.set()
                await running.stop.wait()
        except Exception as error:  # noqa: BLE001 - one scope must not end the others
            _log.error("the faces of a scope failed", exc_info=error)
        finally:
            running.ready.set()
            if self._apps.get(access) is running:
                del self._apps[access]

    def _end_surplus(self) -> None:
        idle = [access for access, each in self._apps.items() if not each.requests]
        for access in idle[: max(0, len(self._apps) - MAX_APPS)]:
            self._end(access)

    def _end(self, access: AccessScope) -> None:
        running = self._apps.pop(access)
        self._streams.discard_part(running.streams)
        running.stop.set()

    async def _end_closed_scopes(self, looking: anyio.CancelScope) -> None:
        """End the streams of scopes that are not open any more; requests are refused anyway."""
        with looking:
            while True:
                await anyio.sleep(RECHECK_S)
                for access in tuple(self._apps):
                    if not await self._may_go_on(access) and access in self._apps:
                        self._end(access)

    async def _may_go_on(self, access: AccessScope) -> bool:
        try:
            return await self._is_valid(access)
        except QmdError as error:  # the next look may succeed
            _log.warning("tokens could not be looked up: %s", error)
            return True
