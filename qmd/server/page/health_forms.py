"""The forms of the view of the state: jobs, undo, collections and contexts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.engine_text import with_cause
from qmd.errors import ConflictError, InputError
from qmd.server.endpoints.client_paths import context_path
from qmd.server.new_collection import add_collection, permitted_directory
from qmd.server.page.browser import Form
from qmd.server.page.forms import FormRoute, Sent, Shown, form_routes
from qmd.server.page.site import Site

DEFAULT_MASK = "**/*.md"


def routes(site: Site) -> list[Route]:
    async def new(request: Request) -> Response:
        return site.page(request, "health_add.html", form=_Fields(Form()), problem=None)

    async def collection(request: Request) -> Response:
        name = request.query_params.get("name", "")
        values = await site.run(request, lambda: _collection(site, name))
        return site.page(request, "health_collection.html", values, problem=None)

    async def context(request: Request) -> Response:
        path = request.query_params.get("path", "")
        contexts = await site.run(request, site.kb.contexts)
        text = next((each.text for each in contexts if each.uri == path), "")
        values = {"path": path, "text": text, "is_new": not text}
        return site.page(request, "health_context.html", values, problem=None)

    return [
        site.route("/overview/collections/new", new),
        site.route("/overview/collection", collection),
        site.route("/overview/context", context),
        *form_routes(site, _FORMS),
    ]


# --- jobs and undo ------------------------------------------------------------------


def _index(sent: Sent) -> str:
    sent.site.jobs.start("indexing", tuple(sent.form.all("collection")))
    return "/overview#jobs"


def _embed(sent: Sent) -> str:
    if not sent.kb.can_embed():
        raise InputError(
            "The embedding model is not on the server's machine.",
            hint="Run 'qmd embed' there once, which downloads it.",
        )
    sent.site.jobs.start("embedding", tuple(sent.form.all("collection")))
    return "/overview#jobs"


def _undo(sent: Sent) -> str:
    number = sent.number(sent["change"])
    if number is None:
        raise InputError("The number of the change is missing.")
    for refused in sent.kb.undo.undo_change(number).refused:
        raise ConflictError(with_cause(refused.file, refused.reason))
    return "/overview?notice=undone#changes"


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


def _typed(sent: Sent) -> Shown:
    """The form again, as it was sent."""
    return Shown("health_add.html", {"form": _Fields(sent.form)})


def _look(sent: Sent) -> Shown:
    """Show what the new collection would hold, and ask whether to add it."""
    fields = _Fields(sent.form)
    preview = sent.kb.preview_collection(
        permitted_directory(sent.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    overlap = sent.kb.overlap_notice(preview.path)
    return Shown(
        "health_add_confirm.html", {"form": fields, "preview": preview, "overlap": overlap}
    )


def _add(sent: Sent) -> str:
    fields = _Fields(sent.form)
    added = add_collection(
        sent.kb,
        permitted_directory(sent.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    if sent.kb.freshness().watch == "off":  # else the process that keeps the index notices it
        sent.site.jobs.start("indexing", (added.name,))
    return "/overview?notice=added#collections"


def _collection(site: Site, name: str) -> dict[str, object]:
    collection = site.kb.collection(name)
    return {"collection": collection, "new_name": collection.name}


def _rename(sent: Sent) -> str:
    sent.kb.rename_collection(sent["name"], sent["new_name"].strip())
    return "/overview?notice=renamed#collections"


def _renaming(sent: Sent) -> Shown:
    values = _collection(sent.site, sent["name"])
    return Shown("health_collection.html", {**values, "new_name": sent["new_name"].strip()})


def _remove(sent: Sent) -> str:
    sent.kb.remove_collection(sent["name"])
    return "/overview?notice=removed#collections"


# --- contexts -----------------------------------------------------------------------


def _save_context(sent: Sent) -> str:
    path = context_path(sent["path"].strip(), sent.kb.collections())
    sent.kb.add_context(path, sent["text"])
    return "/overview?notice=context_saved#contexts"


def _context(sent: Sent) -> Shown:
    fields = {"path": sent["path"].strip(), "text": sent["text"], "is_new": bool(sent["is_new"])}
    return Shown("health_context.html", fields)


def _remove_context(sent: Sent) -> str:
    sent.kb.remove_context(sent["path"])
    return "/overview?notice=context_removed#contexts"


_FORMS = (
    FormRoute("/overview/index", _index, "administrator"),
    FormRoute("/overview/embed", _embed, "administrator"),
    FormRoute("/overview/undo", _undo, "writer"),
    FormRoute("/overview/collections/look", _look, "administrator", again=_typed),
    FormRoute("/overview/collections/change", _typed),
    FormRoute("/overview/collections/add", _add, "administrator", again=_typed),
    FormRoute("/overview/collection/rename", _rename, "administrator", again=_renaming),
    FormRoute("/overview/collection/remove", _remove, "administrator"),
    FormRoute("/overview/context/save", _save_context, "administrator", again=_context),
    FormRoute("/overview/context/remove", _remove_context, "administrator"),
)
