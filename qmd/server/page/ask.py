"""The view of conversations with the agent, at ``/ask``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qmd.errors import InputError
from qmd.server.event_stream import MEDIA_TYPE, EventResponse, encoded, turn_stream
from qmd.server.page.ask_view import AskView
from qmd.server.page.links import note_address
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Visit, view_routes
from qmd.values.chats import ChatMode

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn

_HEARTBEAT_S = 15.0
_MODES: dict[str, ChatMode] = {"read": "read", "write": "write"}


def routes(site: Site) -> list[Route]:
    view = AskView(site)
    return [*_pages(site, view), *_changes(site, view), *view_routes(site, _FORMS)]


def _pages(site: Site, view: AskView) -> list[Route]:
    """The routes that only read."""

    async def new(request: Request) -> Response:
        find = request.query_params.get("find", "")
        return site.page(request, "ask.html", await site.run(request, lambda: view.new(find)))

    async def conversation(request: Request) -> Response:
        chat_id, language = request.path_params["id"], site.language(request)
        values = await site.run(request, lambda: view.conversation(chat_id, language))
        return site.page(request, "ask.html", values)

    async def listed(request: Request) -> Response:
        find = request.query_params.get("find", "")
        current = request.query_params.get("current", "")
        values = await site.run(request, lambda: view.listed(find))
        return site.page(request, "ask_list.html", {**values, "current": current})

    async def turns(request: Request) -> Response:
        chat_id, language = request.path_params["id"], site.language(request)
        shown = await site.run(request, lambda: view.turns(chat_id, language))
        return site.page(request, "ask_turns.html", turns=shown)

    async def turn(request: Request) -> Response:
        chat_id, language = request.path_params["id"], site.language(request)
        shown = await site.run(request, lambda: view.last_turn(chat_id, language))
        return site.page(request, "ask_turns.html", turns=[shown])

    async def change(request: Request) -> Response:
        question = request.query_params.get("question", "")
        lines = view.change(request.path_params["id"], question)
        return site.page(request, "ask_change.html", lines=lines)

    async def events(request: Request) -> Response:
        """What happens in the turn that runs; `idle` if none does, or another process runs it."""
        turn = view.turn_here(request.path_params["id"])
        response = Response(encoded("idle", {}), media_type=MEDIA_TYPE)
        if turn is not None and turn.status == "running":
            response = EventResponse(turn_stream(turn, heartbeat_s=_HEARTBEAT_S))
        response.headers.update({"cache-control": "no-store", "x-accel-buffering": "no"})
        return response

    return [
        site.route("/ask", new),
        site.route("/ask/{id}", conversation),
        site.route("/ask/{id}/events", events),
        site.route("/part/ask/list", listed),
        site.route("/part/ask/{id}/turns", turns),
        site.route("/part/ask/{id}/turn", turn),
        site.route("/part/ask/{id}/change", change),
    ]


def _changes(site: Site, view: AskView) -> list[Route]:
    """The routes that let the model answer, or change a conversation."""

    async def send(request: Request) -> Response:
        form = site.form(request)
        mode = _MODES.get(form.get("mode", "read"))
        if mode is None:
            raise InputError("The mode of a conversation is read or write.")
        question, chat = form.get("text"), form.get("chat") or None
        turn = await site.run(request, lambda: site.chats.start(question, chat, mode=mode))
        return await begun(request, turn)

    async def retry(request: Request) -> Response:
        chat_id = request.path_params["id"]
        turn = await site.run(request, lambda: site.chats.retry(chat_id))
        return await begun(request, turn)

    async def begun(request: Request, turn: AgentTurn) -> Response:
        """Tell a script where the turn is to be followed; without one load its page."""
        if _is_script(request):
            path = await site.run(request, lambda: view.export_path(turn.name))
            return JSONResponse({"chat": turn.chat, "name": turn.name, "export_path": path})
        return site.redirect(f"/ask/{turn.chat}")

    async def stop(request: Request) -> Response:
        chat_id = request.path_params["id"]
        turn = view.turn_here(chat_id)
        if turn is not None:
            turn.stop()
        return done(request, chat_id)

    async def answer(request: Request) -> Response:
        chat_id = request.path_params["id"]
        form = site.form(request)
        agree = form.get("agree")
        if agree not in ("yes", "no"):
            raise InputError("The answer to a question is yes or no.")
        turn, question = view.running_turn(chat_id), form.get("question")
        await site.run(request, lambda: turn.answer(question, agree == "yes"))
        return done(request, chat_id)

    def done(request: Request, chat_id: str) -> Response:
        if _is_script(request):
            return Response(status_code=204)
        return site.redirect(f"/ask/{quote(chat_id, safe='')}")

    actions = {
        "/ask/send": send,
        "/ask/{id}/stop": stop,
        "/ask/{id}/answer": answer,
        "/ask/{id}/retry": retry,
    }
    return [site.route(path, handler, ("POST",)) for path, handler in actions.items()]


def _rename(visit: Visit) -> str:
    return f"/ask/{visit.kb.rename_chat(visit.path['id'], visit['name']).id}"


def _delete(visit: Visit) -> str:
    visit.site.chats.forget(visit.path["id"])
    return "/ask"


def _export(visit: Visit) -> str:
    """Save the conversation as a note, and show the note."""
    return note_address(visit.kb.export_chat(visit.path["id"], visit["path"]).path)


_FORMS = (
    PageView("/ask/{id}/rename", act=_rename),
    PageView("/ask/{id}/delete", act=_delete),
    PageView("/ask/{id}/export", act=_export),
)


def _is_script(request: Request) -> bool:
    """Whether a script of the page asks, which says that it reads no HTML."""
    return "text/html" not in request.headers.get("accept", "")
