"""The REST face of a knowledge base, asked in this process or over a socket."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio.from_thread
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from qmd import KnowledgeBase
from qmd.errors import (
    InferenceError,
    InputError,
    OutsideRootsError,
    ScopeError,
    StoreError,
    WritesForbiddenError,
)
from qmd.operations.error_meanings import MEANINGS
from qmd.server.app import exception_handlers
from qmd.server.endpoints import endpoints
from qmd.server.endpoints.definition import RestEndpoint
from qmd.server.failures import CODE_HEADER
from qmd.server.openapi import statuses
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


class InProcess(httpx.BaseTransport):
    """
    Answers requests by an app on another thread's event loop, as a server has.

    Starlette's own client crosses between the threads eight times for each request, so that it can
    read what is streamed; this one does it once, and takes half of its time. What the app raises
    is an answer with status 500, as behind a server.
    """

    def __init__(self, app: Starlette, portal: anyio.from_thread.BlockingPortal) -> None:
        self._app = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._portal = portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._portal.call(self._answer, request)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._app.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        content = b"".join([part async for part in answer.stream])
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


def endpoint_of(request: httpx.Request) -> RestEndpoint | None:
    """The endpoint that a request is for."""
    for endpoint in endpoints():
        path = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(endpoint.operation.path))
        if endpoint.operation.method == request.method and re.fullmatch(path, request.url.path):
            return endpoint
    return None


#: What docs/rest.md says that every endpoint may send.
_OF_ALL = {InputError.code, ScopeError.code, "request_ended", "plugin_failed"} | {
    error.code for error in MEANINGS if issubclass(error, InferenceError | StoreError)
}

_OF_WRITES = {WritesForbiddenError.code, OutsideRootsError.code}


def check_code(response: httpx.Response) -> None:
    """The description lists the code of an error under its status."""
    code, endpoint = response.headers.get(CODE_HEADER), endpoint_of(response.request)
    if code is None or endpoint is None:
        return
    operation = endpoint.operation
    assert response.status_code in statuses(endpoint), f"{endpoint.name} does not list {code}"
    if code in _OF_ALL or (operation.writes and code in _OF_WRITES):
        return
    listed = {error.code for error in operation.errors}
    assert code in listed, f"{endpoint.name} does not list {code}"


@contextmanager
def client_of(app: Starlette, **options: Any) -> Iterator[httpx.Client]:
    """A client of an app in this process, between its start and its end."""
    lifespan = app.router.lifespan_context(app)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(lifespan),
        httpx.Client(
            transport=InProcess(app, portal),
            base_url="http://localhost",
            event_hooks={"response": [check_code]},
            **options,
        ) as client,
    ):
        yield client


@contextmanager
def rest_client(kb: KnowledgeBase, **options: Any) -> Iterator[httpx.Client]:
    """A client of the REST face of a knowledge base."""
    with client_of(rest_app(kb, **options)) as client:
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
