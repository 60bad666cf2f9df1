"""The forms that change a note without its text: tick a task, move, delete, and undo."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qmd.errors import InputError, QmdError
from qmd.files.edits.tasks import tasks_of
from qmd.server.page.browser import FormNotice
from qmd.server.page.edit import wants_json
from qmd.server.page.forms import WRITE_S, FormRoute, Sent, Shown, form_routes
from qmd.server.page.links import address
from qmd.server.page.site import Site
from qmd.values.edits import UndoReply

_LISTED = 50  # notes that the plan of a move names


def routes(site: Site) -> list[Route]:
    forms = _Forms(site)
    return [
        site.route("/tick/{file:file}", forms.tick, ("GET", "POST")),
        site.route("/move/{file:file}", forms.move, ("GET", "POST")),
        site.route("/delete/{file:file}", forms.deletion),
        *form_routes(
            site, [FormRoute("/delete/{file:file}", _delete), FormRoute("/undo/{change}", _undo)]
        ),
    ]


class _Forms:
    """Carries out the forms."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def tick(self, request: Request) -> Response:
        """
        Tick or untick the task at ``line`` of the note with ``docid``, as ``done`` says (1 or 0).

        A script that asks for JSON gets the new docid; else the browser loads the note again. GET
        lists the tasks, each with a button, for browsers without scripts.
        """
        site, file = self._site, _file(request)
        if request.method != "POST":
            source = await site.run(request, lambda: site.kb.note_source(file))
            return site.page(request, "tasks.html", source=source, tasks=tasks_of(source.text))
        form = site.form(request)
        site.require_notes(request)
        line, docid, done = form.get("line"), form.get("docid"), form.get("done") == "1"
        if not (line.isascii() and line.isdecimal() and len(line) < 8 and docid):
            raise InputError("The form does not say which task of which text is meant.")
        ticked = await site.run(
            request,
            lambda: site.kb.tick_task(file, int(line), done=done, if_docid=docid),
            timeout_s=WRITE_S,
        )
        if wants_json(request):
            return JSONResponse({"done": done, "docid": ticked.docid, "change": ticked.change})
        if ticked.written:
            words = site.text(request, "tasks.ticked" if done else "tasks.unticked")
            site.notify(request, FormNotice(words, ticked.change))
        return site.redirect(f"/note/{address(ticked.file)}?line={line}")

    async def deletion(self, request: Request) -> Response:
        site, file = self._site, _file(request)
        would_be = await site.run(request, lambda: site.kb.delete_note(file, preview=True))
        backlinks = await site.run(request, lambda: site.kb.backlinks(file, limit=20))
        return site.page(
            request, "delete.html", file=would_be.file, docid=would_be.docid, links=backlinks
        )

    async def move(self, request: Request) -> Response:
        site, file, form = self._site, _file(request), None
        plan = problem = None
        new_path = file.partition("/")[2]
        if request.method == "POST":
            form = site.form(request)
            new_path = form.get("to").strip()
            try:
                site.require_notes(request)
                if form.get("action") == "move":
                    return await self._move(request, file, new_path)
                plan = await site.run(
                    request,
                    lambda: site.kb.move_note(file, _place(file, new_path), preview=True),
                    timeout_s=WRITE_S,
                )
            except QmdError as error:
                problem = error
        else:
            await site.run(request, lambda: site.kb.note_source(file))  # raises if there is none
        return site.page(
            request,
            "move.html",
            http_status=200 if problem is None else min(problem.http_status, 499),
            file=file,
            new_path=new_path,
            plan=plan,
            listed=_LISTED,
            problem=None if problem is None else site.error_text(request, problem),
        )

    async def _move(self, request: Request, file: str, new_path: str) -> Response:
        site, docid = self._site, self._site.form(request).get("docid")
        moved = await site.run(
            request,
            lambda: site.kb.move_note(file, _place(file, new_path), if_docid=docid or None),
            timeout_s=WRITE_S,
        )
        words = site.text(request, "edit.moved", file=moved.file, n=moved.notes)
        site.notify(
            request,
            FormNotice(
                f"{words} {site.translated(request, moved.problem or '')}".strip(), moved.change
            ),
        )
        return site.redirect(f"/note/{address(moved.file)}")


def _delete(sent: Sent) -> str:
    sent.site.require_notes(sent.request)
    deleted = sent.kb.delete_note(sent.path["file"], if_docid=sent["docid"])
    sent.notify(sent.text("edit.deleted", file=deleted.file), change=deleted.change)
    return "/"


def _undo(sent: Sent) -> str | Shown:
    sent.site.require_notes(sent.request)
    number = sent.number(sent.path["change"])
    if number is None:
        raise InputError("The address does not name a change.")
    reply = sent.kb.undo.undo_change(number)
    if reply.refused:
        return Shown("undo_refused.html", {"refused": reply.refused}, 409)
    (undone,) = reply.undone
    words = sent.text("edit.redone" if undone.is_redo else "edit.undone")
    if undone.first is not None:
        action, of_file = undone.first
        words += f" {sent.text(f'history.action_{action}')} {of_file.file}"
    sent.notify(f"{words}.", reply.problem, reply.change, undo=not undone.is_redo)
    return _after_undo(reply)


def _file(request: Request) -> str:
    file: str = request.path_params["file"]
    return file


def _place(file: str, path: str) -> str:
    """A path in the collection of a note, as `kb.move_note` takes it."""
    return f"{file.partition('/')[0]}/{path.strip('/')}" if path.strip("/") else ""


def _after_undo(reply: UndoReply) -> str:
    """The note that was moved back, else the first that is there again; the search without one."""
    files = [
        each
        for change in reply.undone
        for each in change.files
        if each.action != "deleted" and not each.file.startswith("/")
    ]
    files.sort(key=lambda each: each.moved_from is None)
    return f"/note/{address(files[0].file)}" if files else "/"
