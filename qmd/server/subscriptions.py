"""
Notifies clients when documents change to which they have subscribed, or when the tools change.

Clients of protocol versions before 2026-07-28 subscribe to one URI at a time, and get a
notification on their connection. Later clients keep a request open that lists the URIs. Several
URIs may name one document, so each subscription stores the document, and the URI that the client
used for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from qmd.server import mcp_sdk
from qmd.server.mcp_wire import Context

if TYPE_CHECKING:
    from qmd.ingest.events import Event, EventBus

MAX_PER_CLIENT = 1000
_NOTIFY_S = 5.0


class Subscriptions:
    """
    All subscriptions of one server. Use it on the event loop only; `attached` connects the events.

    Args:
        name_of: Returns the ``collection/path`` that a URI names; the document need not exist yet.
        tools_changed: Is called after events, and returns whether the list of tools has changed;
            None if it never does.
    """

    def __init__(
        self,
        name_of: Callable[[str], Awaitable[str]],
        tools_changed: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._name_of = name_of
        self._tools_changed = tools_changed
        self._has_new_events = False  # since the tools were compared
        self._comparing = False
        self._listers: set[mcp_sdk.Connection] = set()  # clients that know the list of tools
        self._clients: dict[mcp_sdk.Connection, dict[str, str]] = {}  # client → URI → document
        self._bus = mcp_sdk.InMemorySubscriptionBus()
        self._listen = mcp_sdk.ListenHandler(self._bus)
        self._listened: dict[str, Counter[str]] = {}  # document → URIs in open requests
        self._attached = 0
        self._detach: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- events ------------------------------------------------------------------------

    @asynccontextmanager
    async def attached(self, events: EventBus) -> AsyncIterator[None]:
        """Listen to events while the block runs; several transports may do this at once."""
        if not self._attached:
            loop = asyncio.get_running_loop()

            def receive(event: Event) -> None:
                names = {name for name in (event.file, _previous(event)) if name is not None}
                with suppress(RuntimeError):  # the loop is closed: the server is ending
                    if event.path is not None:
                        loop.call_soon_threadsafe(self._notify_of, names)
                    if self._tools_changed is not None:
                        loop.call_soon_threadsafe(self._compare_tools)

            self._detach = events.subscribe(receive)
        self._attached += 1
        try:
            yield
        finally:
            self._attached -= 1
            if not self._attached:
                self._detach()
                for task in self._tasks:
                    task.cancel()

    def _notify_of(self, names: Iterable[str]) -> None:
        changed = set(names)
        targets = [
            (client, uri)
            for client, uris in self._clients.items()
            for uri, name in uris.items()
            if name in changed
        ]
        listened = [uri for name in changed for uri in self._listened.get(name, ())]
        if targets or listened:
            self._start(self._notify(targets, listened))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(
        self, targets: list[tuple[mcp_sdk.Connection, str]], listened: list[str]
    ) -> None:
        for uri in listened:
            await self._bus.publish(mcp_sdk.ResourceUpdated(uri))
        for client, uri in targets:
            with anyio.move_on_after(_NOTIFY_S):  # a client that does not read misses the change
                await client.send_resource_updated(uri)

    # -- tools -------------------------------------------------------------------------

    def follow_tools(self, ctx: Context) -> None:
        """
        Tell this client from now on when the list of tools has changed.

        Since 2026-07-28 only clients that `listen` may be told.
        """
        client = _connection(ctx)
        if self._tools_changed is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        if client not in self._listers:
            self._listers.add(client)
            client.exit_stack.callback(self._listers.discard, client)

    def _compare_tools(self) -> None:
        self._has_new_events = True
        if not self._comparing:  # of a burst of events only the first and the last count
            self._comparing = True
            self._start(self._notify_of_tools())

    async def _notify_of_tools(self) -> None:
        try:
            while self._has_new_events and self._tools_changed is not None:
                self._has_new_events = False
                if not await self._tools_changed():
                    continue
                await self._bus.publish(mcp_sdk.ToolsListChanged())
                for client in list(self._listers):
                    with anyio.move_on_after(_NOTIFY_S):  # one that does not read misses it
                        await client.send_tool_list_changed()
        finally:
            self._comparing = False

    # -- protocol versions before 2026-07-28 ---------------------------------------------

    async def add(self, ctx: Context, uri: str) -> None:
        """
        Subscribe a client to a URI.

        Raises:
            MCPError: The client has too many subscriptions.
        """
        client = _connection(ctx)
        name = await self._name_of(uri)
        if client not in self._clients:
            self._clients[client] = {}
            client.exit_stack.callback(self._clients.pop, client, None)
        uris = self._clients[client]
        if len(uris) >= MAX_PER_CLIENT and uri not in uris:
            raise mcp_sdk.MCPError(
                types.INVALID_PARAMS, f"At most {MAX_PER_CLIENT} resources at once."
            )
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
            raise mcp_sdk.MCPError(
                types.INVALID_PARAMS, f"At most {MAX_PER_CLIENT} resources at once."
            )
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
        """End the open requests of `listen` with their final results."""
        self._listen.close()


def _previous(event: Event) -> str | None:
    return None if event.previous is None else f"{event.collection}/{event.previous}"


def _connection(ctx: Context) -> mcp_sdk.Connection:
    # Only the connection identifies a client and shows when it has left. The SDK gives handlers
    # a session for each request, and no public access to its connection.
    return ctx.session._connection
