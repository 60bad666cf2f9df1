"""Logs a line for each request: method, path, status, bytes and time; never the query."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("qmd.access")


class AccessLog:
    """ASGI middleware that logs each request, without its query string and body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status, size = 0, 0

        async def send_and_count(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        finally:
            fields = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "bytes": size,
                "ms": round((time.perf_counter() - started) * 1000, 1),
            }
            _log.info("request", extra={"fields": fields})
