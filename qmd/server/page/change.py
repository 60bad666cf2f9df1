"""The forms that change a note without its text: tick a task, move, delete, and undo."""

from __future__ import annotations

from starlette.responses import JSONResponse

from qmd.errors import InputError
from qmd.files.edits.tasks import tasks_of
from qmd.server.page.links import note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.values.edits import MovedNote, UndoReply

_LISTED = 50  # notes that the plan of a move names


def _tasks(visit: Visit) -> Shown:
    """All tasks, each with a button, for browsers without scripts."""
    source = visit.kb.note_source(visit.file)
    return Shown("tasks.html", {"source": source, "tasks": tasks_of(source.text)})


def _tick(visit: Visit) -> Answer:
    """
    Tick or untick the task at ``line`` of the note with ``docid``, as ``done`` says (1 or 0).

    A script gets the new docid; else the browser loads the note again.
    """
    line, docid, done = visit.number(visit["line"]), visit["docid"], visit["done"] == "1"
    if line is None or not docid:
        raise InputError("The form does not say which task of which text is meant.")
    ticked = visit.kb.tick_task(visit.file, line, done=done, if_docid=docid)
    if visit.wants_json:
        return JSONResponse({"done": done, "docid": ticked.docid, "change": ticked.change})
    if ticked.written:
        words = visit.text("tasks.ticked" if done else "tasks.unticked")
        visit.notify(words, change=ticked.change)
    if visit["back"] == "days":
        return f"/days?{visit['query']}" if visit["query"] else "/days"
    return f"{note_address(ticked.file)}?line={line}"


def _ask_to_delete(visit: Visit) -> Shown:
    would_be = visit.kb.delete_note(visit.file, preview=True)
    links = visit.kb.backlinks(visit.file, limit=20)
    values = {"file": would_be.file, "docid": would_be.docid, "links": links}
    return Shown("delete.html", values)


def _delete(visit: Visit) -> str:
    if "docid" not in visit.form:
        raise InputError("The form lacks the docid of the note.")
    # It is empty for a file that is no document.
    deleted = visit.kb.delete_note(visit.file, if_docid=visit["docid"] or None)
    visit.notify(visit.text("edit.deleted", file=deleted.file), change=deleted.change)
    return "/"


def _ask_for_place(visit: Visit) -> Shown:
    visit.kb.note_source(visit.file)  # raises if there is none
    return _place(visit, visit.file.partition("/")[2])


def _move(visit: Visit) -> Answer:
    """Move the note, or show first what that changes."""
    path = visit["to"].strip().strip("/")
    new_file = f"{visit.file.partition('/')[0]}/{path}" if path else ""
    if visit["action"] != "move":
        plan = visit.kb.move_note(visit.file, new_file, preview=True)
        return _place(visit, visit["to"].strip(), plan)
    moved = visit.kb.move_note(visit.file, new_file, if_docid=visit["docid"] or None)
    words = visit.text("edit.moved", file=moved.file, n=moved.notes)
    visit.notify(words, moved.problem, moved.change)
    return note_address(moved.file)


def _place(visit: Visit, new_path: str, plan: MovedNote | None = None) -> Shown:
    values = {"file": visit.file, "new_path": new_path, "plan": plan, "listed": _LISTED}
    return Shown("move.html", values)


def _undo(visit: Visit) -> Answer:
    number = visit.number(visit.path["change"])
    if number is None:
        raise InputError("The address does not name a change.")
    reply = visit.kb.undo.undo_change(number)
    if reply.refused:
        return Shown("undo_refused.html", {"refused": reply.refused}, 409)
    (undone,) = reply.undone
    words = visit.text("edit.redone" if undone.is_redo else "edit.undone")
    if undone.first is not None:
        action, of_file = undone.first
        words += f" {visit.text(f'history.action_{action}')} {of_file.file}"
    visit.notify(f"{words}.", reply.problem, reply.change, undo=not undone.is_redo)
    return "/overview#changes" if visit["from"] == "overview" else _after_undo(reply)


def _after_undo(reply: UndoReply) -> str:
    """The note that was moved back, else the first that is there again; the search without one."""
    files = [
        each
        for change in reply.undone
        for each in change.files
        if each.action != "deleted" and not each.file.startswith("/")
    ]
    files.sort(key=lambda each: each.moved_from is None)
    return note_address(files[0].file) if files else "/"


VIEWS = (
    PageView("/tick/{file:file}", _tasks, _tick, "writer"),
    PageView("/move/{file:file}", _ask_for_place, _move, "writer",
         again=lambda visit: _place(visit, visit["to"].strip())),
    PageView("/delete/{file:file}", _ask_to_delete, _delete, "writer"),
    PageView("/undo/{change}", act=_undo, sender="writer"),
)  # fmt: skip
