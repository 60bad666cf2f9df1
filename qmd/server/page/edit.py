"""The views that write: a new note, the editor with its preview."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.page.site import Site


def routes(site: Site) -> list[Route]:
    async def preview(request: Request) -> Response:
        return site.page(request, "edit_preview.html", text=site.form(request).get("text"))

    return [site.route("/part/preview", preview, ("POST",))]
