"""The view of the state of the knowledge base, at ``/overview``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.page.site import Site


def routes(site: Site) -> list[Route]:
    async def overview(request: Request) -> Response:
        status = await site.run(request, site.kb.status)
        return site.page(request, "health.html", status=status)

    return [site.route("/overview", overview)]
