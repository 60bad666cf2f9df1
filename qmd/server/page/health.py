"""The view of the state of the knowledge base, at ``/overview``, with its forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.ingest.why import SKIP_REMEDIES
from qmd.kb import KnowledgeBase
from qmd.operations.bounds import MAX_PATH
from qmd.server.activity import SPAN_S, QueryTimes, query_times
from qmd.server.endpoints.definition import add_collection, context_path, permitted_directory
from qmd.server.jobs import JobKind, Pace
from qmd.server.late_mcp import MCP_PATH
from qmd.server.page.browser import Form
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Shown, Visit
from qmd.system import clock
from qmd.values.text import DEFAULT_MASK

_CLIENTS = 12
_CALLS = 8  # of each client
_CHANGES = 10
_JOBS = 5
_PAGE = 50  # files on one page
_DOCTOR_S = 120.0  # the checks may ask a slow model


def _overview(visit: Visit) -> Shown:
    values = {
        **_state(visit),
        "changes": _changes(visit.kb),
        "clients": visit.site.activity.clients(limit=_CLIENTS, last=_CALLS),
    }
    return Shown("health.html", values)


def _charts(visit: Visit) -> Shown:
    now = datetime.now().astimezone()
    hours = visit.kb.indexed_per_hour(now - timedelta(days=DAYS + 1))
    times = query_times(visit.site.activity.calls(), since=now.timestamp() - _SPANS * SPAN_S)
    values = {
        "per_day": documents_per_day(hours, now),
        "per_hour": documents_per_hour(hours, now),
        "searches": [
            (kind, _query_times(times, kind, now), _latest(times, kind))
            for kind in ("words", "meaning", "both")
        ],
    }
    return Shown("health_charts.html" if visit.is_part else "health_charts_page.html", values)


def _skipped(visit: Visit) -> Shown:
    reason = visit.query("reason")
    return _listed(
        visit,
        "health_skipped.html",
        lambda offset: visit.kb.skips(reason, offset=offset, limit=_PAGE + 1),
        reason=reason,
        remedy=SKIP_REMEDIES.get(reason),
    )


def _listed(
    visit: Visit, template: str, read: Callable[[int], Sequence[object]], **more: object
) -> Shown:
    """A page of a long list; ``read`` returns one entry more than a page has, if there is one."""
    number = visit.page_number()
    entries = read((number - 1) * _PAGE)
    has_more = len(entries) > _PAGE
    values = {"entries": entries[:_PAGE], "number": number, "has_more": has_more, **more}
    return Shown(template, values)


def _why(visit: Visit) -> Shown:
    path = visit.query("path").strip()
    if len(path) > MAX_PATH:
        raise InputError(
            engine_text("The path has more than {most} characters.", most=f"{MAX_PATH:,}")
        )
    explanation = visit.kb.why(path) if path else None
    return Shown("health_why.html", {"typed": path, "explanation": explanation})


def _state(visit: Visit) -> dict[str, object]:
    """What the view shows that changes while somebody looks at it."""
    site, kb, now = visit.site, visit.kb, datetime.now().astimezone()
    offset = now.strftime("%z")
    state = {
        "overview": kb.overview(),
        "warned": kb.count_warned(),  # documents
        "freshness": kb.freshness(),
        "contexts": kb.contexts(),
        "can_embed": kb.can_embed(),
        "indexing": site.jobs.running.pace("indexing"),
        "embedding": site.jobs.running.pace("embedding"),
        "jobs": site.jobs.latest()[:_JOBS],
    }
    return {
        "state": state,
        "ago": lambda at: _seconds_since(at, now),
        "zone": f"UTC{offset[:3]}:{offset[3:5]}",
        "mcp_url": str(visit.request.base_url).rstrip("/") + MCP_PATH,
    }


def _seconds_since(at: str | float, now: datetime) -> float:
    if isinstance(at, str):
        at = clock.parse(at).timestamp()
    return max(0.0, now.timestamp() - at)


def _changes(kb: KnowledgeBase) -> list[dict[str, object]]:
    """The last changes: of each file the action, its name, and whether a collection has it."""
    folders = {f"{each.path.rstrip('/')}/": each.name for each in kb.collections()}

    def named(path: str) -> tuple[str, bool]:
        for folder, collection in folders.items():
            if path.startswith(folder):
                return f"{collection}/{path.removeprefix(folder)}", True
        return path, False

    return [
        {"change": change, "files": [(each.action, *named(each.path)) for each in change.files]}
        for change in kb.undo.changes(limit=_CHANGES)
    ]


# --- charts ---------------------------------------------------------------------------


DAYS = 30
_HOURS = 24
_SPANS = 24  # of `SPAN_S` seconds: two hours

#: Of a chart: the label, the value of the darker part at its foot, and that of the whole bar.
Bar = tuple[str, float, float]


def documents_per_day(hours: Mapping[datetime, int], now: datetime) -> list[Bar]:
    """
    The documents of the last `DAYS` days.

    Args:
        hours: The number in each hour, UTC.
        now: In the time zone whose days are meant.
    """
    counts: Counter[date] = Counter()
    for hour, count in hours.items():
        counts[hour.astimezone(now.tzinfo).date()] += count
    days = [(now - timedelta(days=back)).date() for back in reversed(range(DAYS))]
    return [(day.isoformat(), counts[day], counts[day]) for day in days]


def documents_per_hour(hours: Mapping[datetime, int], now: datetime) -> list[Bar]:
    """The documents of the last 24 hours. Arguments as `documents_per_day`."""
    counts: Counter[datetime] = Counter()
    for hour, count in hours.items():
        counts[hour.astimezone(now.tzinfo).replace(minute=0)] += count
    latest = now.replace(minute=0, second=0, microsecond=0)
    starts = [latest - timedelta(hours=back) for back in reversed(range(_HOURS))]
    return [(f"{start:%H:%M}", counts[start], counts[start]) for start in starts]


def _query_times(times: Sequence[QueryTimes], kind: str, now: datetime) -> list[Bar]:
    """The times of one kind of search: p95, with p50 as the darker part."""
    latest = int(now.timestamp() // SPAN_S) * SPAN_S
    starts = [latest - back * SPAN_S for back in reversed(range(_SPANS))]
    points = {point.start: (point.p50_s, point.p95_s) for point in times if point.kind == kind}
    return [
        (f"{datetime.fromtimestamp(start, now.tzinfo):%H:%M}", *points.get(start, (0.0, 0.0)))
        for start in starts
    ]


def _latest(times: Sequence[QueryTimes], kind: str) -> QueryTimes | None:
    return next((point for point in reversed(times) if point.kind == kind), None)


# --- the bar at the top of all views --------------------------------------------------


class Work(NamedTuple):
    """
    Work that goes on.

    Attributes:
        pace: How far it is; None if another process does it, or if it has just begun.
        waiting: The files or documents that are left, if there is no pace.
    """

    kind: JobKind
    pace: Pace | None
    waiting: int


def work_of(site: Site) -> list[Work]:
    """The work that goes on now, in this process or in the one that keeps the index."""
    fresh = site.kb.freshness()
    waiting: dict[JobKind, int] = {
        "indexing": fresh.files_pending if fresh.indexing else 0,
        # Without a process that makes the vectors, they wait for a person.
        "embedding": fresh.embeddings_pending if fresh.embedding else 0,
    }
    work = [Work(kind, site.jobs.running.pace(kind), count) for kind, count in waiting.items()]
    return [each for each in work if each.pace is not None or each.waiting]


# --- jobs -----------------------------------------------------------------------------


def _index(visit: Visit) -> str:
    visit.site.jobs.start("indexing", tuple(visit.form.all("collection")))
    return "/overview#jobs"


def _embed(visit: Visit) -> str:
    if not visit.kb.can_embed():
        raise InputError(
            "The embedding model is not on the server's machine.",
            hint="Run 'qmd embed' there once, which downloads it.",
        )
    visit.site.jobs.start("embedding", tuple(visit.form.all("collection")))
    return "/overview#jobs"


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


def _typed(visit: Visit) -> Shown:
    """The form, with what was typed into it before."""
    return Shown("health_add.html", {"form": _Fields(visit.form)})


def _look(visit: Visit) -> Shown:
    """Show what the new collection would hold, and ask whether to add it."""
    fields = _Fields(visit.form)
    preview = visit.kb.preview_collection(
        permitted_directory(visit.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    overlap = visit.kb.overlap_notice(preview.path)
    values = {"form": fields, "preview": preview, "overlap": overlap}
    return Shown("health_add_confirm.html", values)


def _add(visit: Visit) -> str:
    fields = _Fields(visit.form)
    added = add_collection(
        visit.kb,
        permitted_directory(visit.kb, fields.path),
        name=fields.name or None,
        mask=fields.mask,
        ignore=fields.ignored,
    )
    if visit.kb.freshness().watch == "off":  # else the process that keeps the index notices it
        visit.site.jobs.start("indexing", (added.name,))
    visit.notify(visit.text("health.notice_added"))
    return "/overview#collections"


def _collection(visit: Visit) -> Shown:
    """A collection, with the new name that was typed before."""
    collection = visit.kb.collection(visit.query("name") or visit["name"])
    new_name = visit["new_name"].strip() if "new_name" in visit.form else collection.name
    return Shown("health_collection.html", {"collection": collection, "new_name": new_name})


def _rename(visit: Visit) -> str:
    visit.kb.rename_collection(visit["name"], visit["new_name"].strip())
    visit.notify(visit.text("health.notice_renamed"))
    return "/overview#collections"


def _remove(visit: Visit) -> str:
    visit.kb.remove_collection(visit["name"])
    visit.notify(visit.text("health.notice_removed"))
    return "/overview#collections"


# --- contexts -----------------------------------------------------------------------


def _context(visit: Visit) -> Shown:
    path = visit.query("path")
    text = next((each.text for each in visit.kb.contexts() if each.uri == path), "")
    return Shown("health_context.html", {"path": path, "text": text, "is_new": not text})


def _again(visit: Visit) -> Shown:
    path, text, is_new = visit["path"].strip(), visit["text"], bool(visit["is_new"])
    return Shown("health_context.html", {"path": path, "text": text, "is_new": is_new})


def _save_context(visit: Visit) -> str:
    path = context_path(visit["path"].strip(), visit.kb.collections())
    visit.kb.add_context(path, visit["text"])
    visit.notify(visit.text("health.notice_context_saved"))
    return "/overview#contexts"


def _remove_context(visit: Visit) -> str:
    visit.kb.remove_context(visit["path"])
    visit.notify(visit.text("health.notice_context_removed"))
    return "/overview#contexts"


VIEWS = (
    # What is being indexed or embedded now, and the time left, at the top of all views.
    PageView("/part/live", lambda visit: Shown("live.html", {"work": work_of(visit.site)})),
    PageView("/overview", _overview),
    PageView("/part/overview/live", lambda visit: Shown("health_live.html", _state(visit))),
    PageView("/part/overview/charts", _charts),
    PageView("/overview/charts", _charts),
    PageView(
        "/overview/check",
        act=lambda visit: Shown("health_checks.html", {"checks": visit.kb.doctor()}),
        timeout_s=_DOCTOR_S,
    ),
    PageView("/overview/skipped", _skipped),
    PageView(
        "/overview/warnings",
        lambda visit: _listed(
            visit,
            "health_warned.html",
            lambda offset: visit.kb.warned(offset=offset, limit=_PAGE + 1),
        ),
    ),
    PageView("/overview/why", _why),
    PageView("/overview/index", act=_index, sender="administrator"),
    PageView("/overview/embed", act=_embed, sender="administrator"),
    PageView("/overview/collections/new", _typed),
    PageView("/overview/collections/look", act=_look, sender="administrator", again=_typed),
    PageView("/overview/collections/change", act=_typed),
    PageView("/overview/collections/add", act=_add, sender="administrator", again=_typed),
    PageView("/overview/collection", _collection),
    PageView("/overview/collection/rename", act=_rename, sender="administrator", again=_collection),
    PageView("/overview/collection/remove", act=_remove, sender="administrator"),
    PageView("/overview/context", _context),
    PageView("/overview/context/save", act=_save_context, sender="administrator", again=_again),
    PageView("/overview/context/remove", act=_remove_context, sender="administrator"),
)
