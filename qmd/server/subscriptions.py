"""
Which client wants to hear of which document, and telling it when that document changes.

Clients of the handshake eras subscribe one URI at a time and hear on their own channel;
those of 2026-07-28 keep a request open that lists the URIs. Both name a document as they
like, so what is remembered is the document, and the URI each client used for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from qmd.ingest.events import Event, EventBus

Context = ServerRequestContext[Any, Any]

MAX_PER_CLIENT = 1000
_TELL_S = 5.0


class Subscriptions:
    """
    All subscriptions of one server. Only for the event loop; `attached` brings events in.

    Args:
        name_of: The ``collection/path`` that a URI names; it need not exist yet.
    """

    def __init__(self, name_of: Callable[[str], Awaitable[str]]) -> None:
        self._name_of = name_of
        self._clients: dict[Connection, dict[str, str]] = {}  # each: URI -> document
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._listened: dict[str, Counter[str]] = {}  # document -> URIs, in open listen requests
        self._attached = 0
        self._detach: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- events ------------------------------------------------------------------------

    @asynccontextmanager
    async def attached(self, events: EventBus) -> AsyncIterator[None]:
        """Listen to changes while the block runs; several transports may do so at once."""
        if not self._attached:
            loop = asyncio.get_running_loop()

            def heard(event: Event) -> None:
                names = {name for name in (event.file, _previous(event)) if name is not None}
                if event.path is not None:
                    with suppress(RuntimeError):  # the loop is closed: the server is ending
                        loop.call_soon_threadsafe(self._changed, names)

            self._detach = events.subscribe(heard)
        self._attached += 1
        try:
            yield
        finally:
            self._attached -= 1
            if not self._attached:
                self._detach()
                for task in self._tasks:
                    task.cancel()

    def _changed(self, names: Iterable[str]) -> None:
        changed = set(names)
        targets = [
            (client, uri)
            for client, uris in self._clients.items()
            for uri, name in uris.items()
            if name in changed
        ]
        listened = [uri for name in changed for uri in self._listened.get(name, ())]
        if targets or listened:
            task = asyncio.get_running_loop().create_task(self._tell(targets, listened))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, targets: list[tuple[Connection, str]], listened: list[str]) -> None:
        for uri in listened:
            await self._bus.publish(ResourceUpdated(uri))
        for client, uri in targets:
            with anyio.move_on_after(_TELL_S):  # a client that does not read has to ask again
                await client.send_resource_updated(uri)

    # -- the handshake eras ------------------------------------------------------------

    async def add(self, ctx: Context, uri: str) -> None:
        """Raises MCPError: There are too many."""
        client = _connection(ctx)
        name = await self._name_of(uri)
        if client not in self._clients:
            self._clients[client] = {}
            client.exit_stack.callback(self._clients.pop, client, None)
        uris = self._clients[client]
        if len(uris) >= MAX_PER_CLIENT and uri not in uris:
            raise MCPError(types.INVALID_PARAMS, f"At most {MAX_PER_CLIENT} resources at once.")
        uris[uri] = name

    def remove(self, ctx: Context, uri: str) -> None:
        self._clients.get(_connection(ctx), {}).pop(uri, None)

    # -- since 2026-07-28 --------------------------------------------------------------

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer one open request until the client leaves or the server stops."""
        uris = tuple(params.notifications.resource_subscriptions or ())
        if len(uris) > MAX_PER_CLIENT:
            raise MCPError(types.INVALID_PARAMS, f"At most {MAX_PER_CLIENT} resources at once.")
        with self._listening({uri: await self._name_of(uri) for uri in uris}):
            return await self._listen(ctx, params)

    @contextmanager
    def _listening(self, names: dict[str, str]) -> Iterator[None]:
        for uri, name in names.items():
            self._listened.setdefault(name, Counter())[uri] += 1
        try:
            yield
        finally:
            for uri, name in names.items():
                uris = self._listened[name]
                uris[uri] -= 1
                if not uris[uri]:
                    del uris[uri]
                if not uris:
                    del self._listened[name]

    def close(self) -> None:
        """End the open listen requests, each with its final result."""
        self._listen.close()


def _previous(event: Event) -> str | None:
    return None if event.previous is None else f"{event.collection}/{event.previous}"


def _connection(ctx: Context) -> Connection:
    # The SDK gives handlers a session per request and no public way to its connection, which
    # alone tells one client from another and when it has left.
    return ctx.session._connection
