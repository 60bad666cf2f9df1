"""The view of conversations with the agent, at ``/ask``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from qmd.errors import ChatNotFoundError, InputError, NotFoundError, QmdError
from qmd.kb import KnowledgeBase
from qmd.render import LinkResolver, NoLinks, render_note
from qmd.server.event_stream import MEDIA_TYPE, EventResponse, encoded, turn_stream
from qmd.server.page.answer import answer_html, sources_of
from qmd.server.page.ask_turn import TurnView, finished, seconds_since
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.values.chats import RESUMABLE, ChatMode, ChatTurn

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn
    from qmd.inference.llm import LlmSettings

_HEARTBEAT_S = 15.0
_MODES: dict[str, ChatMode] = {"read": "read", "write": "write"}
_LISTED = 50
_NO_NAME = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*#^\[\]]+")


# --- what is shown ----------------------------------------------------------------------


def _new(visit: Visit) -> Shown:
    nothing: dict[str, Any] = {
        "chat": None,
        "turns": [],
        "mode": "read",
        "is_running": False,
        "export_path": "",
    }
    return Shown("ask.html", {**_around(visit, visit.query("find")), **nothing})


def _conversation(visit: Visit) -> Shown:
    chat = visit.site.chats.chat(visit.path["id"])
    turns = [_turn(visit, turn) for turn in chat.turns]
    for turn in turns[:-1]:
        turn.may_retry = False
    if visit.is_part:
        return Shown("ask_turns.html", {"turns": turns})
    around = _around(visit, "")
    values = {
        "chat": chat.info,
        "turns": turns,
        "mode": chat.info.mode if around["may_write"] else "read",
        "is_running": any(turn.is_running for turn in turns),
        "export_path": _export_path(visit.kb, chat.info.name),
    }
    return Shown("ask.html", {**around, **values})


def _around(visit: Visit, find: str) -> dict[str, Any]:
    """What stands around a conversation."""
    chats = visit.site.chats
    model: LlmSettings | None = None
    problem: QmdError | None = None
    try:
        if chats.has_model:
            model = visit.kb.backend_settings.server()
    except QmdError as error:
        problem = error
    more = {"model": model, "problem": problem, "may_write": chats.may_write}
    return {**_latest(visit, find), **more}


def _latest(visit: Visit, find: str) -> dict[str, Any]:
    """The latest conversations, those that have the words; and which are answered now."""
    running = {turn.chat for turn in visit.site.chats.running()}
    return {"chats": visit.kb.chats(find, limit=_LISTED).chats, "find": find, "running": running}


def _list(visit: Visit) -> Shown:
    values = _latest(visit, visit.query("find"))
    return Shown("ask_list.html", {**values, "current": visit.query("current")})


def _last_turn(visit: Visit) -> Shown:
    last = visit.site.chats.last_turn(visit.path["id"])
    return Shown("ask_turns.html", {"turns": [_turn(visit, last)]})


def _change(visit: Visit) -> Shown:
    """The whole change that a question is about."""
    question = visit.query("question")
    consents = _running_turn(visit).consents
    if consents is None:
        raise NotFoundError(f"There is no question {question}.")
    return Shown("ask_change.html", {"lines": consents.lines(question)})


def _events(visit: Visit) -> Response:
    """What happens in the turn that runs; `idle` if none does, or another process runs it."""
    turn = _turn_here(visit)
    response = Response(encoded("idle", {}), media_type=MEDIA_TYPE)
    if turn is not None and turn.status == "running":
        response = EventResponse(turn_stream(turn, heartbeat_s=_HEARTBEAT_S))
    response.headers.update({"cache-control": "no-store", "x-accel-buffering": "no"})
    return response


def _turn_here(visit: Visit) -> AgentTurn | None:
    """The last turn of a conversation that this process has run, if any."""
    try:
        return visit.site.chats.turn(visit.path["id"])
    except ChatNotFoundError:
        return None


def _running_turn(visit: Visit) -> AgentTurn:
    """
    The turn of a conversation that is answered now.

    Raises:
        NotFoundError: There is none.
    """
    turn = _turn_here(visit)
    if turn is None or turn.status != "running":
        raise NotFoundError("No question of this conversation is being answered.")
    return turn


def _turn(visit: Visit, stored: ChatTurn) -> TurnView:
    """A turn with all that has happened in it."""

    def markdown(text: str) -> Markup:
        """Safe HTML for what the model wrote."""
        collections = visit.kb.collections()
        links: LinkResolver = NoLinks()
        if collections:
            links = PageLinks(visit.kb, f"{collections[0].name}/answer.md")
        # The model may begin with a rule, "---", and a text that begins so has frontmatter.
        return Markup(render_note(f"\n{text}", links).html)  # noqa: S704 - it is safe

    turn = TurnView(visit.path["id"], stored.number, stored.question, stored.status)
    turn.seconds = seconds_since(stored.started) if turn.is_running else stored.seconds
    turn.may_retry = stored.status in RESUMABLE
    for event in stored.events:
        turn.take(event.kind, event.data)
    for step in turn.steps:
        if step["kind"] == "text":
            is_open = turn.is_running and step is turn.steps[-1]
            step["shown"] = finished(step["text"]) if is_open else step["text"]
            step["html"] = markdown(step["shown"])
    if turn.answer:
        turn.sources = sources_of(turn.citations)
        turn.html = answer_html(turn, markdown, visit.text)
    return turn


def _export_path(kb: KnowledgeBase, name: str) -> str:
    """A path for the note of a conversation with this name, in the first collection."""
    name = _NO_NAME.sub(" ", name).strip(" .…")[:80] or "conversation"
    collections = kb.collections()
    return f"{collections[0].name}/{name}.md" if collections else f"{name}.md"


# --- what forms do ----------------------------------------------------------------------


def _send(visit: Visit) -> Answer:
    mode = _MODES.get(visit["mode"] or "read")
    if mode is None:
        raise InputError("The mode of a conversation is read or write.")
    return _begun(visit, visit.site.chats.start(visit["text"], visit["chat"] or None, mode=mode))


def _retry(visit: Visit) -> Answer:
    return _begun(visit, visit.site.chats.retry(visit.path["id"]))


def _begun(visit: Visit, turn: AgentTurn) -> Answer:
    """Tell a script where the turn is to be followed; without one load its page."""
    if not visit.wants_json:
        return f"/ask/{turn.chat}"
    path = _export_path(visit.kb, turn.name)
    return JSONResponse({"chat": turn.chat, "name": turn.name, "export_path": path})


def _stop(visit: Visit) -> Answer:
    turn = _turn_here(visit)
    if turn is not None:
        turn.stop()
    return _done(visit)


def _answer(visit: Visit) -> Answer:
    agree = visit["agree"]
    if agree not in ("yes", "no"):
        raise InputError("The answer to a question is yes or no.")
    _running_turn(visit).decide(visit["question"], agree == "yes")
    return _done(visit)


def _done(visit: Visit) -> Answer:
    if visit.wants_json:
        return Response(status_code=204)
    return f"/ask/{quote(visit.path['id'], safe='')}"


def _rename(visit: Visit) -> str:
    return f"/ask/{visit.kb.rename_chat(visit.path['id'], visit['name']).id}"


def _delete(visit: Visit) -> str:
    visit.site.chats.forget(visit.path["id"])
    return "/ask"


def _export(visit: Visit) -> str:
    """Save the conversation as a note, and show the note."""
    return note_address(visit.kb.export_chat(visit.path["id"], visit["path"]).path)


VIEWS = (
    PageView("/ask", _new),
    PageView("/ask/send", act=_send),
    PageView("/ask/{id}", _conversation),
    PageView("/ask/{id}/events", _events, compress=False),
    PageView("/ask/{id}/stop", act=_stop),
    PageView("/ask/{id}/answer", act=_answer),
    PageView("/ask/{id}/retry", act=_retry),
    PageView("/ask/{id}/rename", act=_rename),
    PageView("/ask/{id}/delete", act=_delete),
    PageView("/ask/{id}/export", act=_export),
    PageView("/part/ask/list", _list),
    PageView("/part/ask/{id}/turns", _conversation),
    PageView("/part/ask/{id}/turn", _last_turn),
    PageView("/part/ask/{id}/change", _change),
)
