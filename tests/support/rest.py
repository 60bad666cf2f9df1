"""The REST face of a knowledge base, asked in this process or over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from qmd import KnowledgeBase
from qmd.server.rest import exception_handlers, rest_routes


def rest_app(kb: KnowledgeBase, **options: Any) -> Starlette:
    """The routes alone, without what guards them; ``options`` go to `rest_routes`."""
    app = Starlette(routes=rest_routes(kb, **options), exception_handlers=exception_handlers())
    app.router.redirect_slashes = False
    return app


@contextmanager
def rest_client(kb: KnowledgeBase, **options: Any) -> Iterator[TestClient]:
    """A client on one event loop, as a server has."""
    app = rest_app(kb, **options)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client
