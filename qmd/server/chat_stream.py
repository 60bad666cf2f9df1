"""Sends the events of a turn as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import anyio

from qmd.agent.chat import AgentTurn
from qmd.server.event_stream import encoded
from qmd.values.chats import ChatEvent


async def stream(turn: AgentTurn, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """
    Yield the events of a turn from the first one, until it has ended.

    If none comes for ``heartbeat_s`` seconds, a comment is sent. A client that leaves ends its
    subscription, and not the turn.
    """
    yield b": qmd\n\n"  # shows the client that it is connected
    async with aclosing(batches(turn, heartbeat_s)) as every:
        async for events in every:
            if events:
                yield b"".join(encoded(event.kind, event.data) for event in events)
            else:
                yield b": heartbeat\n\n"


async def batches(turn: AgentTurn, heartbeat_s: float) -> AsyncGenerator[list[ChatEvent], None]:
    """
    Yield the events of a turn, several at once if they come fast, until it has ended; an empty
    list if none comes for ``heartbeat_s`` seconds.
    """
    loop = asyncio.get_running_loop()
    waiting: deque[ChatEvent] = deque()
    arrived = asyncio.Event()

    def add(event: ChatEvent) -> None:
        waiting.append(event)
        arrived.set()

    def listen(event: ChatEvent) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server is ending
            loop.call_soon_threadsafe(add, event)

    unsubscribe = turn.subscribe(listen)
    try:
        while True:
            with anyio.move_on_after(heartbeat_s):
                await arrived.wait()
            arrived.clear()
            events = [waiting.popleft() for _ in range(len(waiting))]
            yield events
            if events and events[-1].kind == "ended":
                return
    finally:
        unsubscribe()
