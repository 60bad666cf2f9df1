"""
Sends events as server-sent events: those of the index, and those of a turn of a conversation.

`sse_starlette`, which comes with the SDK of MCP, is not used: it sends each event by itself and its
heartbeats also between events, leaves a task behind that asks twice a second whether uvicorn ends
(`streams` ends ours at once), and does not close an iterator whose client left before it began.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from qmd.agent.chat import AgentTurn
from qmd.ingest.events import EventBus

T = TypeVar("T")

MAX_WAITING = 1000
"""Events kept for a slow client; older ones are dropped, and ``missed`` reports their number."""

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"
_CONNECTED = b": qmd\n\n"  # shows the client that it is connected


async def index_stream(bus: EventBus, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events that are published from now on, each named after its kind, with JSON as data.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. An event ``missed`` has the number
    of events that a slow client did not get: it should load the current state again. The
    subscription ends when the iterator is closed.
    """
    with _subscribed(bus.subscribe, MAX_WAITING) as take:
        yield _CONNECTED
        while True:
            events, missed = await take(heartbeat_s)
            if missed:
                yield encoded("missed", {"missed": missed})
            yield b"".join(encoded(each.kind, each.as_dict()) for each in events) or HEARTBEAT


async def turn_stream(turn: AgentTurn, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events of a turn from the first one, until it has ended.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. A client that leaves ends its
    subscription, and not the turn.
    """
    with _subscribed(turn.log.subscribe) as take:
        yield _CONNECTED
        while True:
            events, _ = await take(heartbeat_s)
            yield b"".join(encoded(each.kind, each.data) for each in events) or HEARTBEAT
            if events and events[-1].kind == "ended":
                return


def encoded(name: str, value: object) -> bytes:
    """One event, with JSON as data."""
    # json.dumps writes ASCII, so no line separator of Unicode can end a field early.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


class EventResponse(StreamingResponse):
    """A stream of events, which always closes its iterator, even if the client has left."""

    def __init__(
        self, events: AsyncGenerator[bytes, None], on_close: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(events, media_type=MEDIA_TYPE)
        self.headers["cache-control"] = "no-cache"
        self._events = events
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()
            with anyio.CancelScope(shield=True):
                await self._events.aclose()


@contextmanager
def _subscribed(
    subscribe: Callable[[Callable[[T], None]], Callable[[], None]], most: int | None = None
) -> Iterator[Callable[[float], Awaitable[tuple[list[T], int]]]]:
    """
    Subscribe while the block runs. The function it gets waits for events, as many seconds as it is
    told, and returns those that have arrived and how many were dropped since its last call.

    Args:
        subscribe: Calls its argument with each event, on any thread, until what it returns is
            called.
        most: The most events that wait; None for all.
    """
    loop = asyncio.get_running_loop()
    waiting: deque[T] = deque(maxlen=most)
    dropped = 0
    arrived = asyncio.Event()

    def add(event: T) -> None:
        nonlocal dropped
        dropped += len(waiting) == most
        waiting.append(event)
        arrived.set()

    def pass_on(event: T) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server is ending
            loop.call_soon_threadsafe(add, event)

    async def take(seconds: float) -> tuple[list[T], int]:
        nonlocal dropped
        with anyio.move_on_after(seconds):
            await arrived.wait()
        arrived.clear()
        batch = list(waiting), dropped
        waiting.clear()
        dropped = 0
        return batch

    unsubscribe = subscribe(pass_on)
    try:
        yield take
    finally:
        unsubscribe()
