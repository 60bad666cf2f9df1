"""
Makes the MCP server of a knowledge base when something uses it first.

The models of MCP's messages take 15 MB, which a server saves while all its clients use REST, the
page or the shell. A server whose client is on stdin makes it at once.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from qmd import server
from qmd.kb import KnowledgeBase
from qmd.server.activity import Activity
from qmd.tools.toolsets import ToolSelection, select

if TYPE_CHECKING:
    from qmd.server.mcp import McpFace

MCP_PATH = "/mcp"

#: MCP sessions of the handshake eras that may be open at once; idle ones end after 30 minutes.
MAX_SESSIONS = 1000


class LateMcp:
    """
    One MCP server for all transports, and the ASGI application that serves it over HTTP.

    Attributes:
        activity: As that of `McpFace`.
        selection: The tools to offer.
        plain_text: As that of `McpFace`.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        selection: ToolSelection | None = None,
        *,
        plain_text: bool = False,
    ) -> None:
        """``selection``: None for the toolset ``qmd`` alone."""
        self.activity = Activity()
        self.selection = selection or select(["qmd"])
        self.plain_text = plain_text
        self._kb = kb
        self._face: McpFace | None = None
        self._making = threading.Lock()
        self._app: ASGIApp | None = None
        self._tasks: anyio.abc.TaskGroup | None = None

    def face(self) -> McpFace:
        """The MCP server, made now if it was not."""
        with self._making:
            if self._face is None:
                self._face = server.mcp.McpFace(
                    self._kb, self.selection, plain_text=self.plain_text, activity=self.activity
                )
            return self._face

    def close_subscriptions(self) -> None:
        """End the requests of clients that watch documents. For the event loop only."""
        if self._face is not None:
            self._face.subscriptions.close()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Whether all calls have ended within ``timeout_s``."""
        return self._face is None or self._face.wait_until_idle(timeout_s)

    # -- over HTTP ---------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs, requests can be answered."""
        async with anyio.create_task_group() as tasks:
            self._starting = anyio.Lock()
            self._stop = anyio.Event()
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = self._app = None
                self._stop.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if app is None:
            app = await self._started()
        await app(scope, receive, send)

    async def _started(self) -> ASGIApp:
        if self._tasks is None:
            raise RuntimeError("the application does not run")
        async with self._starting:
            if self._app is None:
                face = await anyio.to_thread.run_sync(self.face)
                # The SDK checks Host and Origin on its route only, and its errors have another
                # shape. `RequestGuard` checks them on all routes.
                sdk_app = face.server.streamable_http_app(
                    streamable_http_path=MCP_PATH, host="guarded", max_sessions=MAX_SESSIONS
                )
                [app] = [route.app for route in sdk_app.routes if isinstance(route, Route)]
                await self._tasks.start(self._run, face)
                self._app = app
            return self._app

    async def _run(
        self, face: McpFace, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """The sessions of clients, in a task of their own, as the SDK demands."""
        async with face.server.session_manager.run():
            task_status.started()
            await self._stop.wait()
