"""The bar at the top of all views: what is being indexed or embedded now, and the time left."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.server.jobs import JobKind, Pace
from qmd.server.page.site import Site


@dataclass(frozen=True, slots=True)
class Work:
    """
    Work that goes on.

    Attributes:
        pace: How far it is; None if another process does it, or if it has just begun.
        waiting: The files or documents that are left, if there is no pace.
    """

    kind: JobKind
    pace: Pace | None
    waiting: int = 0


def routes(site: Site) -> list[Route]:
    async def bar(request: Request) -> Response:
        work = await site.run(request, lambda: _work(site))
        return site.page(request, "live.html", work=work)

    return [site.route("/part/live", bar)]


def _work(site: Site) -> list[Work]:
    fresh = site.kb.freshness()
    waiting: dict[JobKind, int] = {
        "indexing": fresh.files_pending if fresh.indexing else 0,
        # Without a process that makes the vectors, they wait for a person.
        "embedding": fresh.embeddings_pending if fresh.embedding else 0,
    }
    work = []
    for kind, count in waiting.items():
        pace = site.jobs.running.pace(kind)
        if pace is not None or count:
            work.append(Work(kind, pace, count))
    return work
