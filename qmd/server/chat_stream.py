"""Sends the events of a turn as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress

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
    loop = asyncio.get_running_loop()
    waiting: deque[ChatEvent] = deque()
    arrived = asyncio.Event()

    def add(event: ChatEvent) -> None:
        waiting.append(event)
        arrived.set()

    def publish(event: ChatEvent) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server is ending
            loop.call_soon_threadsafe(add, event)

    unsubscribe = turn.subscribe(publish)
    try:
        yield b": qmd\n\n"  # shows the client that it is connected
        while True:
            arrived.clear()
            if not waiting:
                with anyio.move_on_after(heartbeat_s) as timeout:
                    await arrived.wait()
                if timeout.cancelled_caught:
                    yield b": heartbeat\n\n"
                    continue
            events = [waiting.popleft() for _ in range(len(waiting))]
            yield b"".join(encoded(event.kind, event.data) for event in events)
            if events[-1].kind == "ended":
                return
    finally:
        unsubscribe()
