"""The views and forms that change a note: create, edit, tick, move, delete, and undo."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote_plus

from starlette.responses import JSONResponse

from qmd import errors
from qmd.files.edits.diff import Choice, conflicts, merge, merged_text
from qmd.files.edits.operations import tasks_of
from qmd.files.vault import file_name_of
from qmd.kb import KnowledgeBase
from qmd.render import NoLinks, Options, render_note
from qmd.server.page.browser import Form
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.server.security import MAX_BODY_BYTES
from qmd.values import Collection
from qmd.values.writing import EditedNote, MovedNote, NoteSource, UndoReply

_MAX_FORM = MAX_BODY_BYTES - 100_000  # bytes of a form, as sent, with room for what is typed
_MAX_CHOICES = 10_000


def _editor(visit: Visit) -> Shown:
    return _shown(visit, _source(visit))


def _preview(visit: Visit) -> Shown:
    return Shown("edit_preview.html", {"preview": _rendered(visit)})


def _carry_out(visit: Visit) -> Answer:
    form = visit.form
    if "text" not in form or "docid" not in form:
        raise errors.InputError("The form lacks the text of the note, or what it was.")
    action, text, docid = form.get("action", "save"), visit["text"], visit["docid"]
    if action == "preview":
        return _shown(visit, _source(visit), preview=_rendered(visit))
    if action == "theirs":
        return note_address(visit.file)
    if action in ("choices", "by_hand"):
        source = _source(visit)
        if source.docid != docid:  # changed once more
            return _conflict(visit, source)
        text = merged_text(merge(_base(form), text, source.text), choices_in(form))
        if action == "by_hand":
            return _shown(visit, source, merged=text)
    continues = visit.number(visit["continues"])
    saved = visit.kb.replace_note(visit.file, text, if_docid=docid, continues=continues)
    return _saved(visit, saved)


def _saved(visit: Visit, saved: EditedNote) -> Answer:
    line = visit.number(visit["line"])
    address = note_address(saved.file) + (f"?line={line}" if line else "")
    stays = visit.wants_json and not visit["leave"]
    if saved.written and not stays:
        visit.notify(visit.text("edit.saved"), saved.problem, saved.change)
    if visit.wants_json:
        done = {"docid": saved.docid, "written": saved.written, "address": address}
        return JSONResponse({**done, "change": saved.change})
    return address


def _again(visit: Visit) -> Shown:
    """What was typed, with what is wrong: nothing was written."""
    try:
        source = _source(visit)
    except errors.NotFoundError:
        return _gone(visit)
    if isinstance(visit.problem, errors.FileChangedError):
        return _conflict(visit, source)
    return _shown(visit, source)


# --- pages ----------------------------------------------------------------------------


def _source(visit: Visit) -> NoteSource:
    source = visit.kb.note_source(visit.file)
    if visit.site.read_only:
        return replace(source, refusal=visit.text(visit.site.why_read_only))
    return source


def _shown(
    visit: Visit, source: NoteSource, *, merged: str | None = None, preview: str | None = None
) -> Shown:
    """
    The editor, with what was typed if the form was sent.

    Args:
        merged: A text that is not saved yet.
    """
    docid, base, text = source.docid, source.text, merged
    if merged is None and "text" in visit.form:
        docid, base, text = visit["docid"], visit["base"], visit["text"]
    shown = source.text if text is None else text
    values = {
        "source": source,
        "text": shown,
        "docid": docid,
        "base": base if _sent_bytes(base, shown) <= _MAX_FORM else None,
        "preview": preview,
        "is_too_long": _sent_bytes(shown) > _MAX_FORM,
        "is_new_text": text is not None,
        "gone": None,
    }
    return Shown("edit.html", values)


def _conflict(visit: Visit, source: NoteSource) -> Shown:
    """Both texts, and what to do."""
    text, base = visit["text"], _base(visit.form)
    if _sent_bytes(base or "", text) > _MAX_FORM:
        base = None
    parts = merge(base, text, source.text)
    values = {
        "source": source,
        "text": text,
        "base": base,
        "parts": parts,
        "conflicts": conflicts(parts),
    }
    return Shown("edit_conflict.html", values, 409)


def _gone(visit: Visit) -> Shown:
    """The note is not there any more: what was typed may become a new note."""
    collection, _, path = visit.file.partition("/")
    folder, _, name = path.rpartition("/")
    shown = _shown(visit, NoteSource(visit.file, visit["text"], "", None))
    new = {"collection": collection, "folder": folder, "name": name}
    return shown._replace(values={**shown.values, "base": None, "docid": "", "gone": new})


def _rendered(visit: Visit) -> str:
    """
    The HTML of what was typed, which `qmd.render` has made safe.

    Its links lead nowhere if the collection is not known.
    """
    file, text = visit.path.get("file") or visit["file"], visit["text"]
    try:
        options = Options(breaks_lines=visit.kb.breaks_lines(file.partition("/")[0]))
        links = PageLinks(
            visit.kb, file, translated=lambda each: visit.site.translated(visit.request, each)
        )
        return render_note(text, links, options).html
    except (errors.CollectionNotFoundError, errors.InvalidPathError):
        return render_note(text, NoLinks()).html


def _base(form: Form) -> str | None:
    """The text that the person began with; None if it was too long for the form."""
    return form.get("base") if "base" in form else None


def _sent_bytes(*texts: str) -> int:
    """The length of texts in a form, each of whose lines ends with CR LF."""
    return sum(len(quote_plus(text)) + 3 * text.count("\n") for text in texts)


def choices_in(form: Form) -> dict[int, Choice]:
    """What the person chose for each conflict; "mine" for those without a choice."""
    choices: dict[int, Choice] = {}
    for number in range(_MAX_CHOICES):
        chosen = form.get(f"choice-{number}")
        if not chosen:
            break
        choices[number] = "theirs" if chosen == "theirs" else "both" if chosen == "both" else "mine"
    return choices


_HEADING = re.compile(r"^(?:---\n.*?\n---\n)?\s*#?[ \t]*([^\n]*)", re.DOTALL)
_MAX_FOLDERS = 500
_READ_DOCUMENTS = 20_000


def _form(visit: Visit) -> Shown:
    collections = visit.kb.writable_collections()
    return _new_shown(visit, collections, _from_link(visit, collections))


def _new_again(visit: Visit) -> Shown:
    collections = visit.kb.writable_collections()
    return _new_shown(visit, collections, _sent(visit.form, collections))


def _create(visit: Visit) -> Answer:
    fields = _sent(visit.form, visit.kb.writable_collections())
    if not fields["name"]:
        raise errors.ConflictError(visit.text("edit.needs_name"))
    path = "/".join(filter(None, (fields["collection"], fields["folder"], fields["name"])))
    created = visit.kb.create_note(path, visit["text"])
    visit.notify(visit.text("edit.created"), created.problem, created.change)
    note = note_address(created.file)
    return JSONResponse({"address": note}) if visit.wants_json else note


def _new_shown(visit: Visit, collections: list[Collection], fields: dict[str, str]) -> Shown:
    names = [each.name for each in collections]
    values = {
        "collections": names,
        "fields": fields,
        "folders": _folders(visit.kb, names),
        "may_write": bool(names) and not visit.site.read_only,
    }
    return Shown("new.html", values)


def _from_link(visit: Visit, collections: list[Collection]) -> dict[str, str]:
    """
    The fields as a link asks for them: ``?name=folder/Note#Heading&from=collection/path``, where
    ``from`` is the note with the link.
    """
    names = [each.name for each in collections]
    path = re.split(r"[#^|]", visit.query("name"))[0].strip().strip("/")
    collection = visit.query("collection") or visit.query("from").partition("/")[0]
    first, _, rest = path.partition("/")
    if rest and first in names and (not collection or first == collection):
        collection, path = first, rest
    folder, _, name = path.rpartition("/")
    name = name.removesuffix(".md")
    return {
        "collection": collection if collection in names else (names or [""])[0],
        "folder": folder or visit.query("folder").strip("/"),
        "name": name,
        "text": f"# {name}\n\n" if name else "",
    }


def _sent(form: Form, collections: list[Collection]) -> dict[str, str]:
    """The fields that were sent; a name that was left empty is made of the first line."""
    fields = {name: form.get(name).strip() for name in ("collection", "folder", "name")}
    fields["folder"] = fields["folder"].strip("/")
    fields["collection"] = fields["collection"] or next((each.name for each in collections), "")
    fields["text"] = form.get("text")
    fields["name"] = fields["name"] or suggested_name(fields["text"])
    return fields


def suggested_name(text: str) -> str:
    """A file name made of the first heading or line of a text; empty without one."""
    match = _HEADING.match(text[:10_000])
    return file_name_of(match[1].strip("# \t") if match is not None else "")


def _folders(kb: KnowledgeBase, collections: list[str]) -> list[str]:
    """The folders of some collections that hold documents."""
    folders: set[str] = set()
    for name in collections:
        for file in kb.files_beginning(f"{name}/", limit=_READ_DOCUMENTS):
            folders.add(file.partition("/")[2].rpartition("/")[0])
    return sorted(folders - {""})[:_MAX_FOLDERS]


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
        raise errors.InputError("The form does not say which task of which text is meant.")
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
        raise errors.InputError("The form lacks the docid of the note.")
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
        raise errors.InputError("The address does not name a change.")
    reply = visit.kb.undo.undo_change(number)
    if reply.refused:
        values = {"refused": reply.refused, "earlier": reply.earlier}
        return Shown("undo_refused.html", values, 409)
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
    PageView("/edit/{file:file}", _editor, _carry_out, "writer", again=_again),
    PageView("/part/preview", act=_preview),
    PageView("/new", _form, _create, "writer", again=_new_again),
    PageView("/tick/{file:file}", _tasks, _tick, "writer"),
    PageView("/move/{file:file}", _ask_for_place, _move, "writer",
         again=lambda visit: _place(visit, visit["to"].strip())),
    PageView("/delete/{file:file}", _ask_to_delete, _delete, "writer"),
    PageView("/undo/{change}", act=_undo, sender="writer"),
)  # fmt: skip
