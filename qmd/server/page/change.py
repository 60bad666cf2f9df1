"""The forms that change a note without its text: tick a task, move, delete, and undo."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qmd.errors import ConflictError, InputError, QmdError
from qmd.files.edits.tasks import tasks_of
from qmd.server.page.addresses import address
from qmd.server.page.edit import WRITE_S, wants_json
from qmd.server.page.notices import FormNotice
from qmd.server.page.site import Site
from qmd.values.edits import UndoReply

_LISTED = 50  # notes that the plan of a move names


def routes(site: Site) -> list[Route]:
    forms = _Forms(site)
    return [
        site.route("/tick/{file:file}", forms.tick, ("GET", "POST")),
        site.route("/move/{file:file}", forms.move, ("GET", "POST")),
        site.route("/delete/{file:file}", forms.delete, ("GET", "POST")),
        site.route("/undo/{change}", forms.undo, ("POST",)),
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
        self._require_writable(request)
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

    async def delete(self, request: Request) -> Response:
        site, file = self._site, _file(request)
        if request.method != "POST":
            would_be = await site.run(request, lambda: site.kb.delete_note(file, preview=True))
            backlinks = await site.run(request, lambda: site.kb.backlinks(file, limit=20))
            return site.page(
                request, "delete.html", file=would_be.file, docid=would_be.docid, links=backlinks
            )
        self._require_writable(request)
        docid = site.form(request).get("docid")
        deleted = await site.run(
            request, lambda: site.kb.delete_note(file, if_docid=docid), timeout_s=WRITE_S
        )
        words = site.text(request, "edit.deleted", file=deleted.file)
        site.notify(request, FormNotice(words, deleted.change))
        return site.redirect("/")

    async def move(self, request: Request) -> Response:
        site, file, form = self._site, _file(request), None
        plan = problem = None
        new_path = file.partition("/")[2]
        if request.method == "POST":
            form = site.form(request)
            new_path = form.get("to").strip()
            try:
                self._require_writable(request)
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
                f"{words} {site.engine_text(request, moved.problem or '')}".strip(), moved.change
            ),
        )
        return site.redirect(f"/note/{address(moved.file)}")

    async def undo(self, request: Request) -> Response:
        site, text = self._site, request.path_params["change"]
        self._require_writable(request)
        if not (text.isascii() and text.isdecimal() and len(text) < 16):
            raise InputError("The address does not name a change.")
        number = int(text)
        reply = await site.run(request, lambda: site.kb.undo.undo_change(number), timeout_s=WRITE_S)
        if reply.refused:
            return site.page(request, "undo_refused.html", http_status=409, refused=reply.refused)
        (undone,) = reply.undone
        words = site.text(request, "edit.redone" if undone.is_redo else "edit.undone")
        if undone.first is not None:
            action, of_file = undone.first
            words += f" {site.text(request, f'history.action_{action}')} {of_file.file}"
        site.notify(
            request,
            FormNotice(
                f"{words}. {site.engine_text(request, reply.problem or '')}".strip(),
                reply.change,
                is_undo=not undone.is_redo,
            ),
        )
        return site.redirect(_after_undo(reply))

    def _require_writable(self, request: Request) -> None:
        """Raises ConflictError: the server is read-only."""
        if self._site.read_only:
            raise ConflictError(self._site.text(request, "edit.read_only"))


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
