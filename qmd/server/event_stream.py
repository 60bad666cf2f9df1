"""Sends the events of the index as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress

import anyio

from qmd.ingest.events import Event, EventBus

MAX_WAITING = 1000
"""Events kept for a slow client; older ones are dropped, and ``missed`` reports their number."""

MEDIA_TYPE = "text/event-stream"


async def stream(bus: EventBus, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events that are published from now on, each named after its kind, with JSON as data.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. An event ``missed`` has the number
    of events that a slow client did not get: it should load the current state again. The
    subscription ends when the iterator is closed.
    """
    loop = asyncio.get_running_loop()
    waiting: deque[Event] = deque()
    missed = 0
    arrived = asyncio.Event()

    def add(event: Event) -> None:
        nonlocal missed
        if len(waiting) >= MAX_WAITING:
            waiting.popleft()
            missed += 1
        waiting.append(event)
        arrived.set()

    def publish(event: Event) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server is ending
            loop.call_soon_threadsafe(add, event)

    unsubscribe = bus.subscribe(publish)
    try:
        yield b": qmd\n\n"  # shows the client that it is connected
        while True:
            if not waiting and not missed:
                arrived.clear()
                with anyio.move_on_after(heartbeat_s) as timeout:
                    await arrived.wait()
                if timeout.cancelled_caught:
                    yield b": heartbeat\n\n"
                    continue
            if missed:
                count, missed = missed, 0
                yield encoded("missed", {"missed": count})
            events = [waiting.popleft() for _ in range(len(waiting))]
            yield b"".join(encoded(event.kind, event.as_dict()) for event in events)
    finally:
        unsubscribe()


def encoded(name: str, value: object) -> bytes:
    """One event, with JSON as data."""
    # json.dumps writes ASCII, so no line separator of Unicode can end a field early.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
