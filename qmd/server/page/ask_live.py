"""
Turns the events of a running turn into what the script of the Ask view puts into the page.

The server makes all HTML: an event for the browser holds a card or a block as it stands in a page
that is loaded later. Only the block that the model is writing goes as plain text. `browser_events`
sends them as server-sent events.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from markupsafe import Markup
from starlette.requests import Request

from qmd.errors import ChatNotFoundError
from qmd.server.event_stream import HEARTBEAT, encoded, events_of
from qmd.server.page.ask_turn import Step, TurnView
from qmd.server.page.ask_view import AskView
from qmd.values.chats import ChatEvent

if TYPE_CHECKING:
    from qmd.server.page.site import Site

BrowserEvent = tuple[str, dict[str, Any]]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class LiveText:
    """Text that arrives in pieces, cut into its blocks of Markdown; the cost is linear."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the block that is not finished
        self._pieces: list[str] = []  # of the line that is not finished
        self._fence = ""  # that encloses the next line

    def add(self, text: str) -> str:
        """Take the next piece, and return the blocks that it finishes; "" for none."""
        if "\n" not in text:
            self._pieces.append(text)
            return ""
        *whole, last = ("".join(self._pieces) + text).split("\n")
        self._pieces = [last]
        finished: list[str] = []
        for line in whole:
            self._lines.append(line)
            fence = _FENCE.match(line)
            if fence and not self._fence:
                self._fence = fence[1]
            elif fence and fence[1].startswith(self._fence):
                self._fence = ""
            elif not line.strip() and not self._fence:
                finished += self._lines
                self._lines = []
        return "\n".join(finished) if any(map(str.strip, finished)) else ""

    @property
    def rest(self) -> str:
        """The text of the block that is not finished."""
        return "\n".join([*self._lines, "".join(self._pieces)])


class LiveTurn:
    """
    A turn while it runs.

    Args:
        turn: The turn, which takes the events.
        html: Renders a step with the templates of the page.
        markdown: Renders Markdown of the model as safe HTML.
        asks: What a screen reader says when a write waits for an answer.
    """

    def __init__(
        self,
        turn: TurnView,
        *,
        html: Callable[[Step], str],
        markdown: Callable[[str], Markup],
        asks: str,
    ) -> None:
        self.turn = turn
        self._html = html
        self._markdown = markdown
        self._asks = asks
        self._text = LiveText()

    def take(self, kind: str, data: Mapping[str, Any]) -> Iterator[BrowserEvent]:
        """The events for the browser that one event of the turn leads to."""
        step = self.turn.take(kind, data)
        if kind == "text":
            yield from self._write(data["text"])
        elif kind == "discard":
            self._text = LiveText()
            yield "discard", {}
        elif kind == "asking":
            yield from self._end_block()
            yield "asking", {"round": data["round"]}
        elif step is not None:
            yield from self._end_block()
            part = {"html": self._html(step)}
            if kind == "tool_started":
                part["tool"] = data["tool"]
            elif kind == "question":
                part["asks"] = self._asks
            yield "part", part

    def _write(self, text: str) -> Iterator[BrowserEvent]:
        finished = self._text.add(text)
        if finished:
            yield "block", {"html": self._markdown(finished), "rest": self._text.rest}
        else:
            yield "text", {"text": text}

    def _end_block(self) -> Iterator[BrowserEvent]:
        rest, self._text = self._text.rest, LiveText()
        if rest.strip():
            yield "block", {"html": self._markdown(rest), "rest": ""}


# --- as server-sent events -----------------------------------------------------------


async def browser_events(
    site: Site, view: AskView, request: Request, chat_id: str, *, heartbeat_s: float
) -> AsyncGenerator[bytes, None]:
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
    async with aclosing(events_of(turn, heartbeat_s)) as every:
        async for events in every:
            if events:
                yield await anyio.to_thread.run_sync(of_browser, events)
            else:
                yield HEARTBEAT
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
