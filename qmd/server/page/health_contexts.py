"""The pages that edit contexts, which describe what lies below a path."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.endpoints.client_paths import context_path
from qmd.server.page.health_rules import attempt, form_page
from qmd.server.page.site import Site


def routes(site: Site) -> list[Route]:
    async def edit_context(request: Request) -> Response:
        path = request.query_params.get("path", "")
        contexts = await site.run(request, site.kb.contexts)
        text = next((each.text for each in contexts if each.uri == path), "")
        return form_page(
            site, request, "health_context.html", None, path=path, text=text, is_new=not text
        )

    async def save_context(request: Request) -> Response:
        form = site.form(request)
        path, text = form.get("path").strip(), form.get("text")

        def save() -> None:
            site.kb.add_context(context_path(path, site.kb.collections()), text)

        error = await attempt(site, request, save)
        if error is None:
            return site.redirect("/overview?notice=context_saved#contexts")
        is_new = bool(form.get("is_new"))
        return form_page(
            site, request, "health_context.html", error, path=path, text=text, is_new=is_new
        )

    async def remove_context(request: Request) -> Response:
        path = site.form(request).get("path")
        error = await attempt(site, request, lambda: site.kb.remove_context(path))
        if error is not None:
            raise error
        return site.redirect("/overview?notice=context_removed#contexts")

    return [
        site.route("/overview/context", edit_context),
        site.route("/overview/context/save", save_context, ["POST"]),
        site.route("/overview/context/remove", remove_context, ["POST"]),
    ]
