"""The forms of the view of the state: jobs, collections and contexts."""

from __future__ import annotations

from qmd.errors import InputError
from qmd.server.endpoints.client_paths import (
    add_collection,
    context_path,
    permitted_directory,
)
from qmd.server.page.browser import Form
from qmd.server.page.views import PageView, Shown, Visit
from qmd.values.names import DEFAULT_MASK

# --- jobs -----------------------------------------------------------------------------


def _index(visit: Visit) -> str:
    visit.site.jobs.start("indexing", tuple(visit.form.all("collection")))
    return "/overview#jobs"


def _embed(visit: Visit) -> str:
    if not visit.kb.can_embed():
        raise InputError(
            "The embedding model is not on the server's machine.",
            hint="Run 'qmd embed' there once, which downloads it.",
        )
    visit.site.jobs.start("embedding", tuple(visit.form.all("collection")))
    return "/overview#jobs"


# --- collections --------------------------------------------------------------------


class _Fields:
    """What was typed into the form of a new collection."""

    def __init__(self, form: Form) -> None:
        self.path = form.get("path").strip()
        self.name = form.get("name").strip()
        self.mask = form.get("mask").strip() or DEFAULT_MASK
        self.ignore = form.get("ignore")

    @property
    def ignored(self) -> list[str]:
        return [line for line in map(str.strip, self.ignore.splitlines()) if line]


def _typed(visit: Visit) -> Shown:
    """The form, with what was typed into it before."""
    return Shown("health_add.html", {"form": _Fields(visit.form)})


def _look(visit: Visit) -> Shown:
    """Show what the new collection would hold, and ask whether to add it."""
    fields = _Fields(visit.form)
    preview = visit.kb.preview_collection(
        permitted_directory(visit.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    overlap = visit.kb.overlap_notice(preview.path)
    values = {"form": fields, "preview": preview, "overlap": overlap}
    return Shown("health_add_confirm.html", values)


def _add(visit: Visit) -> str:
    fields = _Fields(visit.form)
    added = add_collection(
        visit.kb,
        permitted_directory(visit.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    if visit.kb.freshness().watch == "off":  # else the process that keeps the index notices it
        visit.site.jobs.start("indexing", (added.name,))
    visit.notify(visit.text("health.notice_added"))
    return "/overview#collections"


def _collection(visit: Visit) -> Shown:
    """A collection, with the new name that was typed before."""
    collection = visit.kb.collection(visit.query("name") or visit["name"])
    new_name = visit["new_name"].strip() if "new_name" in visit.form else collection.name
    return Shown("health_collection.html", {"collection": collection, "new_name": new_name})


def _rename(visit: Visit) -> str:
    visit.kb.rename_collection(visit["name"], visit["new_name"].strip())
    visit.notify(visit.text("health.notice_renamed"))
    return "/overview#collections"


def _remove(visit: Visit) -> str:
    visit.kb.remove_collection(visit["name"])
    visit.notify(visit.text("health.notice_removed"))
    return "/overview#collections"


# --- contexts -----------------------------------------------------------------------


def _context(visit: Visit) -> Shown:
    path = visit.query("path")
    text = next((each.text for each in visit.kb.contexts() if each.uri == path), "")
    return Shown("health_context.html", {"path": path, "text": text, "is_new": not text})


def _again(visit: Visit) -> Shown:
    path, text, is_new = visit["path"].strip(), visit["text"], bool(visit["is_new"])
    return Shown("health_context.html", {"path": path, "text": text, "is_new": is_new})


def _save_context(visit: Visit) -> str:
    path = context_path(visit["path"].strip(), visit.kb.collections())
    visit.kb.add_context(path, visit["text"])
    visit.notify(visit.text("health.notice_context_saved"))
    return "/overview#contexts"


def _remove_context(visit: Visit) -> str:
    visit.kb.remove_context(visit["path"])
    visit.notify(visit.text("health.notice_context_removed"))
    return "/overview#contexts"


VIEWS = (
    PageView("/overview/index", act=_index, sender="administrator"),
    PageView("/overview/embed", act=_embed, sender="administrator"),
    PageView("/overview/collections/new", _typed),
    PageView("/overview/collections/look", act=_look, sender="administrator", again=_typed),
    PageView("/overview/collections/change", act=_typed),
    PageView("/overview/collections/add", act=_add, sender="administrator", again=_typed),
    PageView("/overview/collection", _collection),
    PageView("/overview/collection/rename", act=_rename, sender="administrator", again=_collection),
    PageView("/overview/collection/remove", act=_remove, sender="administrator"),
    PageView("/overview/context", _context),
    PageView("/overview/context/save", act=_save_context, sender="administrator", again=_again),
    PageView("/overview/context/remove", act=_remove_context, sender="administrator"),
)
