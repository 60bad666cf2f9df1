"""The pages that add, rename and remove collections."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.new_collection import add_collection, permitted_directory
from qmd.server.page.browser import Form
from qmd.server.page.health_rules import attempt, form_page
from qmd.server.page.site import Site

DEFAULT_MASK = "**/*.md"


def routes(site: Site) -> list[Route]:
    async def new(request: Request) -> Response:
        return form_page(site, request, "health_add.html", None, form=_Fields(Form()))

    async def look(request: Request) -> Response:
        """Show what the new collection would hold, and ask whether to add it."""
        fields = _Fields(site.form(request))
        previews = []

        def preview() -> None:
            directory = permitted_directory(site.kb, fields.path)
            counted = site.kb.preview_collection(
                directory, name=fields.name or None, mask=fields.mask, ignore=fields.ignored
            )
            previews.append(counted)

        error = await attempt(site, request, preview)
        if error is not None:
            return form_page(site, request, "health_add.html", error, form=fields)
        overlap = await site.run(request, lambda: site.kb.overlap_notice(previews[0].path))
        return form_page(
            site,
            request,
            "health_add_confirm.html",
            None,
            form=fields,
            preview=previews[0],
            overlap=overlap,
        )

    async def add(request: Request) -> Response:
        fields = _Fields(site.form(request))
        names: list[str] = []

        def register() -> None:
            directory = permitted_directory(site.kb, fields.path)
            added = add_collection(
                site.kb,
                directory,
                name=fields.name or None,
                mask=fields.mask,
                ignore=fields.ignored,
            )
            names.append(added.name)

        error = await attempt(site, request, register)
        if error is not None:
            return form_page(site, request, "health_add.html", error, form=fields)
        freshness = await site.run(request, site.kb.freshness)
        if freshness.watch == "off":  # else the process that keeps the index notices the folder
            site.jobs.start("indexing", tuple(names))
        return site.redirect("/overview?notice=added#collections")

    async def change(request: Request) -> Response:
        """The form again, as it was sent."""
        return form_page(site, request, "health_add.html", None, form=_Fields(site.form(request)))

    async def edit(request: Request) -> Response:
        name = request.query_params.get("name", "")
        collection = await site.run(request, lambda: site.kb.collection(name))
        return form_page(
            site,
            request,
            "health_collection.html",
            None,
            collection=collection,
            new_name=collection.name,
        )

    async def rename(request: Request) -> Response:
        form = site.form(request)
        name, new_name = form.get("name"), form.get("new_name").strip()
        error = await attempt(site, request, lambda: site.kb.rename_collection(name, new_name))
        if error is None:
            return site.redirect("/overview?notice=renamed#collections")
        collection = await site.run(request, lambda: site.kb.collection(name))
        return form_page(
            site, request, "health_collection.html", error, collection=collection, new_name=new_name
        )

    async def remove(request: Request) -> Response:
        name = site.form(request).get("name")
        error = await attempt(site, request, lambda: site.kb.remove_collection(name))
        if error is not None:
            raise error
        return site.redirect("/overview?notice=removed#collections")

    return [
        site.route("/overview/collections/new", new),
        site.route("/overview/collections/look", look, ["POST"]),
        site.route("/overview/collections/change", change, ["POST"]),
        site.route("/overview/collections/add", add, ["POST"]),
        site.route("/overview/collection", edit),
        site.route("/overview/collection/rename", rename, ["POST"]),
        site.route("/overview/collection/remove", remove, ["POST"]),
    ]


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
