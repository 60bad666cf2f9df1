"""Sends what happens in a turn to the script of the Ask view, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.requests import Request

from qmd.errors import ChatNotFoundError
from qmd.server.chat_stream import batches
from qmd.server.event_stream import encoded
from qmd.server.page.ask_live import BrowserEvent, LiveTurn
from qmd.server.page.ask_turn import Step, TurnView
from qmd.server.page.ask_view import AskView
from qmd.values.chats import ChatEvent

if TYPE_CHECKING:
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
    async with aclosing(batches(turn, heartbeat_s)) as every:
        async for events in every:
            if events:
                yield await anyio.to_thread.run_sync(of_browser, events)
            else:
                yield b": heartbeat\n\n"
    try:
        last = await anyio.to_thread.run_sync(view.last_turn, chat_id, language)
    except ChatNotFoundError:
        yield _encoded([("deleted", {})])
        return
    ending = "ask.end_done" if last.status == "done" else "ask.end_other"
    end = {"html": html(last), "announce": site.texts.text(language, ending)}
    yield _encoded([("ended", end)])


def _encoded(events: list[BrowserEvent]) -> bytes:
    return b"".join(encoded(kind, data) for kind, data in events)
