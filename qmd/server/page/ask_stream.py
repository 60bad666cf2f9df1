"""Sends what happens in a turn to the script of the Ask view, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.requests import Request

from qmd.errors import ChatNotFoundError
from qmd.server.page.ask_live import BrowserEvent, LiveTurn
from qmd.server.page.ask_turn import Step, TurnView
from qmd.server.page.ask_view import AskView
from qmd.values.chats import ChatEvent

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn
    from qmd.server.page.site import Site


async def browser_events(
    site: Site, view: AskView, request: Request, chat_id: str, *, heartbeat_s: float
) -> AsyncIterator[bytes]:
    """
    Yield the events of the turn that runs, from its beginning, and at its end the finished turn.

    If none runs, the only event is ``idle``: the script loads the turns that are kept.
    """
    turn = view.turn_here(chat_id)
    if turn is None or turn.status != "running":
        yield _encoded([("idle", {})])
        return
    language = site.language(request)

    def html(step: Step | TurnView) -> str:
        name = "ask_turn.html" if isinstance(step, TurnView) else "ask_step.html"
        return site.html(request, name, {"step": step})

    shown = await anyio.to_thread.run_sync(view.begun, turn)
    live = LiveTurn(
        shown,
        html=html,
        markdown=view.markdown,
        asks=site.texts.text(language, "ask.asks"),
    )

    def of_browser(events: list[ChatEvent]) -> bytes:
        sent: list[BrowserEvent] = []
        for event in events:
            sent += live.take(event.kind, event.data)
        return _encoded(sent)

    yield _encoded([("started", {"html": html(shown)})])
    async for events in _batches(turn, heartbeat_s):
        yield await anyio.to_thread.run_sync(of_browser, events) if events else b": heartbeat\n\n"
    try:
        last = await anyio.to_thread.run_sync(view.last_turn, chat_id, language)
    except ChatNotFoundError:
        yield _encoded([("deleted", {})])
        return
    ending = "ask.end_done" if last.status == "done" else "ask.end_other"
    end = {"html": html(last), "announce": site.texts.text(language, ending)}
    yield _encoded([("ended", end)])


async def _batches(turn: AgentTurn, heartbeat_s: float) -> AsyncIterator[list[ChatEvent]]:
    """The events of a turn, several at once if they come fast; [] if none comes for a while."""
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


def _encoded(events: list[BrowserEvent]) -> bytes:
    # json.dumps writes ASCII, so no line separator of Unicode can end a field early.
    return "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events).encode()
