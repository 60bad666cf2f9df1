"""The view of the state of the knowledge base, at ``/overview``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.ingest.why import SKIP_REMEDIES
from qmd.operations.bounds import MAX_PATH
from qmd.server.activity import SPAN_S, QueryTimes, query_times
from qmd.server.jobs import JobKind, Pace, ServerJob
from qmd.server.page import charts, health_forms
from qmd.server.page.site import Site
from qmd.system import clock
from qmd.values import Collection, Context, Freshness
from qmd.values.edits import FileChange
from qmd.values.reports import Overview

_CLIENTS = 12
_CALLS = 8  # of each client
_CHANGES = 10
_JOBS = 5
_PAGE = 50  # files on one page
_MAX_PAGE = 100_000
_DOCTOR_S = 120.0  # the checks may ask a slow model

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _State:
    """What the part of the view shows that changes while somebody looks at it."""

    overview: Overview
    warned: int  # documents
    freshness: Freshness
    skipped_of: dict[str, int]
    contexts: Sequence[Context]
    can_embed: bool
    indexing: Pace | None
    embedding: Pace | None
    jobs: Sequence[ServerJob]


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of files, with their names as ``collection/path`` if they are in one."""

    change: FileChange
    files: tuple[tuple[str, str, bool], ...]  # action, name, whether a collection has it


def routes(site: Site) -> list[Route]:
    """The routes of the view and of the pages below it."""

    async def overview(request: Request) -> Response:
        state, changes = await site.run(
            request, lambda: (_state(site), _changes(site, site.kb.collections()))
        )
        return site.page(
            request,
            "health.html",
            state=state,
            changes=changes,
            clients=site.activity.clients(limit=_CLIENTS, last=_CALLS),
            **_common(site, request),
        )

    async def live(request: Request) -> Response:
        state = await site.run(request, lambda: _state(site))
        return site.page(request, "health_live.html", state=state, **_common(site, request))

    async def show_charts(request: Request) -> Response:
        now = datetime.now().astimezone()
        hours = await site.run(
            request, lambda: site.kb.indexed_per_hour(now - (charts.DAYS + 1) * _DAY)
        )
        since = now.timestamp() - charts.SPANS * SPAN_S
        times = query_times(site.activity.calls(), since=since)
        part = request.url.path.startswith("/part/")
        return site.page(
            request,
            "health_charts.html" if part else "health_charts_page.html",
            per_day=charts.documents_per_day(hours, now),
            per_hour=charts.documents_per_hour(hours, now),
            searches=[
                (kind, charts.query_time_chart(times, kind, now), _latest(times, kind))
                for kind in ("words", "meaning", "both")
            ],
            height=charts.HEIGHT,
        )

    async def check(request: Request) -> Response:
        checks = await site.run(request, site.kb.doctor, timeout_s=_DOCTOR_S)
        return site.page(request, "health_checks.html", checks=checks)

    async def skipped(request: Request) -> Response:
        reason = request.query_params.get("reason", "")
        number = _page_number(request)
        files = await site.run(
            request,
            lambda: site.kb.skips(reason, offset=(number - 1) * _PAGE, limit=_PAGE + 1),
        )
        return site.page(
            request,
            "health_skipped.html",
            reason=reason,
            remedy=SKIP_REMEDIES.get(reason),
            files=files[:_PAGE],
            number=number,
            has_more=len(files) > _PAGE,
        )

    async def warned(request: Request) -> Response:
        number = _page_number(request)
        documents = await site.run(
            request, lambda: site.kb.warned(offset=(number - 1) * _PAGE, limit=_PAGE + 1)
        )
        return site.page(
            request,
            "health_warned.html",
            documents=documents[:_PAGE],
            number=number,
            has_more=len(documents) > _PAGE,
        )

    async def why(request: Request) -> Response:
        path = request.query_params.get("path", "").strip()
        explanation = None
        if path:
            if len(path) > MAX_PATH:
                raise InputError(
                    engine_text("The path has more than {most} characters.", most=f"{MAX_PATH:,}")
                )
            explanation = await site.run(request, lambda: site.kb.why(path))
        return site.page(request, "health_why.html", typed=path, explanation=explanation)

    async def bar(request: Request) -> Response:
        """What is being indexed or embedded now, and the time left, at the top of all views."""
        return site.page(request, "live.html", work=await site.run(request, lambda: _work(site)))

    return [
        site.route("/part/live", bar),
        site.route("/overview", overview),
        site.route("/part/overview/live", live),
        site.route("/part/overview/charts", show_charts),
        site.route("/overview/charts", show_charts),
        site.route("/overview/check", check, ("POST",)),
        site.route("/overview/skipped", skipped),
        site.route("/overview/warnings", warned),
        site.route("/overview/why", why),
        *health_forms.routes(site),
    ]


def _state(site: Site) -> _State:
    kb = site.kb
    overview = kb.overview()
    skipped_of: dict[str, int] = {}
    for each in overview.skips:
        skipped_of[each.collection] = skipped_of.get(each.collection, 0) + each.count
    return _State(
        overview=overview,
        warned=kb.count_warned(),
        freshness=kb.freshness(),
        skipped_of=skipped_of,
        contexts=kb.contexts(),
        can_embed=kb.can_embed(),
        indexing=site.jobs.running.pace("indexing"),
        embedding=site.jobs.running.pace("embedding"),
        jobs=site.jobs.latest()[:_JOBS],
    )


def _changes(site: Site, collections: Sequence[Collection]) -> list[_Change]:
    def named(path: str) -> tuple[str, bool]:
        for collection in collections:
            if path.startswith(f"{collection.path.rstrip('/')}/"):
                return f"{collection.name}/{path[len(collection.path.rstrip('/')) + 1 :]}", True
        return path, False

    return [
        _Change(change, tuple((each.action, *named(each.path)) for each in change.files))
        for change in site.kb.undo.changes(limit=_CHANGES)
    ]


def _common(site: Site, request: Request) -> dict[str, Any]:
    """What the templates of the view need besides the state."""
    now = datetime.now().astimezone()
    offset = now.strftime("%z")
    return {
        "now": now.timestamp(),
        "ago": lambda at: _seconds_since(at, now),
        "zone": f"UTC{offset[:3]}:{offset[3:5]}",
        "mcp_url": str(request.base_url).rstrip("/") + site.mcp_path if site.mcp_path else None,
        "notice": request.query_params.get("notice", ""),
    }


def _seconds_since(at: str | float, now: datetime) -> float:
    if isinstance(at, str):
        at = clock.parse(at).timestamp()
    return max(0.0, now.timestamp() - at)


def _latest(times: Sequence[QueryTimes], kind: str) -> QueryTimes | None:
    return next((point for point in reversed(times) if point.kind == kind), None)


def _page_number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    if not text.isascii() or not text.isdecimal():
        return 1
    return min(max(1, int(text[:9])), _MAX_PAGE)


# --- the bar at the top of all views --------------------------------------------------


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
