"""The whole HTTP face on a real socket, in a thread of this process."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

import anyio
import anyio.from_thread

from qmd import KnowledgeBase
from qmd.server.app import build_app
from qmd.server.http import STOP_S, HttpServer, listen, url_of
from qmd.server.late_mcp import LateMcp
from qmd.server.security import security_for
from qmd.server.streams import Streams

WAIT_S = 60


class LiveApp:
    """
    Serves ``kb`` from `__enter__` to `__exit__`; the knowledge base stays open.

    Args:
        stop_s: As of `HttpServer`.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        token: str | None = None,
        stop_s: float = STOP_S,
        **options: Any,
    ) -> None:
        listener = listen("127.0.0.1", 0)
        streams = Streams()
        mcp = LateMcp(kb)
        self.face = mcp.face()
        app = build_app(
            kb,
            security=security_for("127.0.0.1", token),
            face=mcp,
            streams=streams,
            **options,
        )
        self.url = url_of(listener)
        self._server = HttpServer(app, listener, streams, stop_s=stop_s)
        self._loop: Any = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: anyio.run(self._serve))

    async def _serve(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._server.serve()

    def __enter__(self) -> LiveApp:
        self._thread.start()
        assert self._started.wait(WAIT_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self.face.subscriptions.close)
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
