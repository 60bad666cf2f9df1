"""
The calendar at ``/days``: a month with its notes, and the open tasks by the day when they are due.

``/days/2026-11-20``, ``/days/2026-W47`` and ``/days/2026-11`` are the notes of periods: the browser
is sent to a note that exists, and else offered to create it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from qmd.errors import InputError
from qmd.parse.links import make_link
from qmd.server.page.links import note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.values.days import MonthCalendar
from qmd.values.documents import ListedTask

_MOST_TASKS = 200
#: The keys of the texts for the groups of tasks, with how many days from today each begins.
_GROUPS = (("overdue", None), ("today", 0), ("week", 1), ("later", 8))


class _Group(NamedTuple):
    """Tasks that are due at about the same time; ``name`` is the key of its text."""

    name: str
    tasks: Sequence[ListedTask]


def _days(visit: Visit) -> Shown:
    collection = visit.query("collection") or None
    tag = visit.query("tag").strip()
    calendar, problem = _calendar(visit, collection)
    tasks = visit.kb.tasks(collection=collection, tags=(tag,) if tag else (), limit=_MOST_TASKS)
    values = {
        "calendar": calendar,
        "problem": problem,
        "collection": collection,
        "collections": [each.name for each in visit.kb.collections()] if problem else (),
        "tag": tag,
        "today": date.today(),
        "due": _due(visit, calendar, collection),
        "groups": _groups(tasks.tasks, date.today()),
        "more": tasks.total - len(tasks.tasks),
        "may_write": {each: visit.site.may_write_in(each) for each in _collections(tasks.tasks)},
        "query": visit.request.url.query,
        "months": _around(calendar, collection),
    }
    return Shown("days.html", values)


def _calendar(visit: Visit, collection: str | None) -> tuple[MonthCalendar | None, str]:
    """The month, or a sentence that says why there is none."""
    try:
        return visit.kb.calendar(visit.query("month", "month"), collection=collection), ""
    except InputError as error:
        return None, visit.site.translated(visit.request, error.message)


def _due(visit: Visit, calendar: MonthCalendar | None, collection: str | None) -> Counter[str]:
    """Day → how many open tasks are due."""
    if calendar is None:
        return Counter()
    last = calendar.weeks[-1].period.last.isoformat()
    tasks = visit.kb.tasks(due=last, collection=collection, limit=1000).tasks
    return Counter(each.due for each in tasks if each.due is not None)


def _around(calendar: MonthCalendar | None, collection: str | None) -> tuple[str, str]:
    """The queries of the months before and after the one that is shown; "" for none."""
    if calendar is None:
        return "", ""
    rest = {"collection": collection} if collection else {}
    months = (calendar.period.moved(by) for by in (-1, 1))
    before, after = (
        "" if each is None else urlencode({"month": each.name, **rest}) for each in months
    )
    return before, after


def _collections(tasks: Sequence[ListedTask]) -> set[str]:
    return {each.document.collection for each in tasks}


def _groups(tasks: Sequence[ListedTask], today: date) -> list[_Group]:
    """Those that have tasks; tasks without a day come last."""
    begins = [
        (name, date.min if days is None else today + timedelta(days=days)) for name, days in _GROUPS
    ]
    groups: dict[str, list[ListedTask]] = {name: [] for name in (*dict(begins), "none")}
    for task in tasks:
        day = None if task.due is None else date.fromisoformat(task.due[:10])
        name = "none"
        for each, begin in begins:
            name = each if day is not None and day >= begin else name
        groups[name].append(task)
    return [_Group(name, each) for name, each in groups.items() if each]


def _period(visit: Visit) -> Answer:
    """The note of a period, or the offer to create it."""
    collection = visit.query("collection") or None
    note = visit.kb.periodic_note(visit.path["when"], collection=collection)
    if note.exists and not visit.problem:
        return note_address(note.file)
    may_write = visit.site.may_write_in(note.file.partition("/")[0])
    day = note.first if note.kind == "day" else None
    tasks = visit.kb.tasks(due=day, limit=1000).tasks if day else ()
    values = {
        "note": note,
        "collection": collection,
        "may_write": may_write,
        "elsewhere": _elsewhere(visit, note.file),
        "tasks": [each for each in tasks if each.due == day],
    }
    return Shown("day.html", values)


def _elsewhere(visit: Visit, file: str) -> str | None:
    """A note of the same name in another folder, which may be what the person keeps."""
    collection, _, path = file.partition("/")
    link = make_link("wikilink", path.rpartition("/")[2].removesuffix(".md"), None, 1)
    (target,) = visit.kb.link_targets(f"{collection}/{path}", [link])
    return target.file if target.state == "document" else None


def _create(visit: Visit) -> str:
    collection = visit["collection"] or None
    created = visit.kb.create_periodic_note(visit.path["when"], collection=collection)
    if created.written:
        words = visit.text("days.created", file=created.file)
        visit.notify(words, created.problem, created.change)
    return note_address(created.file)


VIEWS = (
    PageView("/days", _days),
    PageView("/days/{when}", _period, _create, "writer", _period),
)
