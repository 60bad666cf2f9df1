"""The REST face of a knowledge base, asked in this process or over a socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from qmd import KnowledgeBase
from qmd.server.app import exception_handlers
from qmd.server.rest import rest_routes
from qmd.server.security import RequestGuard, Security

WAIT_S = 60
"""Long enough for a busy machine; nothing ever waits for it to pass."""


def rest_app(kb: KnowledgeBase, *, security: Security | None = None, **options: Any) -> Starlette:
    """
    The routes alone, without what guards them unless ``security`` is given; ``options`` go to
    `rest_routes`.
    """
    guard = [] if security is None else [Middleware(RequestGuard, security=security)]
    app = Starlette(
        routes=rest_routes(kb, **options),
        exception_handlers=exception_handlers(),
        middleware=guard,
    )
    app.router.redirect_slashes = False
    return app


@contextmanager
def rest_client(kb: KnowledgeBase, **options: Any) -> Iterator[TestClient]:
    """A client on one event loop, as a server has."""
    app = rest_app(kb, **options)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@contextmanager
def rest_server(kb: KnowledgeBase, **options: Any) -> Iterator[tuple[str, int]]:
    """The routes behind a real socket of this machine; yields its address."""
    config = uvicorn.Config(
        rest_app(kb, **options), log_config=None, lifespan="off", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[:2]
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        listening.close()
        assert not thread.is_alive()
