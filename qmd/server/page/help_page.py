"""The keys of the page and the language of queries: a page, and the same as a dialog."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.page.site import Site


def routes(site: Site) -> list[Route]:
    async def whole(request: Request) -> Response:
        return site.page(request, "help.html")

    async def part(request: Request) -> Response:
        return site.page(request, "help_part.html")

    return [site.route("/help", whole), site.route("/part/help", part)]
