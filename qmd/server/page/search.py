"""The view that searches, at ``/``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.page.site import Site


def routes(site: Site) -> list[Route]:
    async def search(request: Request) -> Response:
        query = request.query_params.get("q", "").strip()
        reply = None
        if query:
            reply = await site.run(request, lambda: site.kb.search(query))
        return site.page(request, "search.html", query=query, reply=reply)

    return [site.route("/", search)]
