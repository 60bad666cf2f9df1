"""The editor of a note, at ``/edit/…``, with its preview, and the choice after a conflict."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote_plus

from starlette.responses import JSONResponse

from qmd.errors import (
    CollectionNotFoundError,
    FileChangedError,
    InputError,
    InvalidPathError,
    NotFoundError,
)
from qmd.files.edits.merge import Choice, conflicts, merge, merged_text
from qmd.render import NoLinks, Options, render_note
from qmd.server.page.browser import Form
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.server.security import MAX_BODY_BYTES
from qmd.values.edits import EditedNote, NoteSource

_MAX_FORM = MAX_BODY_BYTES - 100_000  # bytes of a form, as sent, with room for what is typed
_MAX_CHOICES = 10_000


def _editor(visit: Visit) -> Shown:
    return _shown(visit, _source(visit))


def _preview(visit: Visit) -> Shown:
    return Shown("edit_preview.html", {"preview": _rendered(visit)})


def _carry_out(visit: Visit) -> Answer:
    form = visit.form
    if "text" not in form or "docid" not in form:
        raise InputError("The form lacks the text of the note, or what it was.")
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
    except NotFoundError:
        return _gone(visit)
    if isinstance(visit.problem, FileChangedError):
        return _conflict(visit, source)
    return _shown(visit, source)


VIEWS = (
    PageView("/edit/{file:file}", _editor, _carry_out, "writer", again=_again),
    PageView("/part/preview", act=_preview),
)


# --- pages ----------------------------------------------------------------------------


def _source(visit: Visit) -> NoteSource:
    source = visit.kb.note_source(visit.file)
    if visit.site.read_only:
        return replace(source, refusal=visit.text("edit.read_only"))
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
    except (CollectionNotFoundError, InvalidPathError):
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
