"""
Answers the requests of clients with a scope, each scope by an application of its own.

Such an application has all faces, and only the part of the knowledge base that the scope opens. So
nothing that a face keeps (MCP sessions, subscriptions, conversations, figures) can reach a client
of another scope.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from qmd.errors import QmdError
from qmd.server.security import ACCESS
from qmd.server.streams import Streams
from qmd.values.access import AccessScope

MAX_APPS = 64
"""
The most applications that are kept while no request uses them. Those used least recently end, and
with them their MCP sessions.
"""

RECHECK_S = 5.0
"""Seconds between two looks whether the tokens of open streams are still valid."""

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
