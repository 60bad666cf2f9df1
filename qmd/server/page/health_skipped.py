"""The pages about files that are no documents: by reason, and for one path."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import InputError
from qmd.ingest.verdict import SKIP_REMEDIES
from qmd.operations.bounds import MAX_PATH
from qmd.server.page.health_rules import reason_text
from qmd.server.page.site import Site

PAGE = 50
"""Files on one page."""

_MAX_PAGE = 100_000


def routes(site: Site) -> list[Route]:
    async def skipped(request: Request) -> Response:
        reason = request.query_params.get("reason", "")
        number = _page_number(request)
        files = await site.run(
            request,
            lambda: site.kb.skips(reason, offset=(number - 1) * PAGE, limit=PAGE + 1),
        )
        return site.page(
            request,
            "health_skipped.html",
            reason=reason,
            called=reason_text(site, request, "health.reason_", reason) or reason,
            meaning=reason_text(site, request, "health.skip_", reason) or SKIP_REMEDIES.get(reason),
            files=files[:PAGE],
            number=number,
            has_more=len(files) > PAGE,
        )

    async def warned(request: Request) -> Response:
        number = _page_number(request)
        documents = await site.run(
            request, lambda: site.kb.warned(offset=(number - 1) * PAGE, limit=PAGE + 1)
        )
        return site.page(
            request,
            "health_warned.html",
            documents=documents[:PAGE],
            number=number,
            has_more=len(documents) > PAGE,
        )

    async def why(request: Request) -> Response:
        path = request.query_params.get("path", "").strip()
        explanation = None
        if path:
            if len(path) > MAX_PATH:
                raise InputError(f"The path has more than {MAX_PATH:,} characters.")
            explanation = await site.run(request, lambda: site.kb.why(path))
        return site.page(request, "health_why.html", typed=path, explanation=explanation)

    return [
        site.route("/overview/skipped", skipped),
        site.route("/overview/warnings", warned),
        site.route("/overview/why", why),
    ]


def _page_number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    if not text.isascii() or not text.isdecimal():
        return 1
    return min(max(1, int(text[:9])), _MAX_PAGE)
