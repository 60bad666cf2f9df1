"""Lists the tasks of notes: open or done, by when they are due, by tag."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.search.query import dates
from qmd.store.sql.tasks import TaskFilter
from qmd.values import Filters
from qmd.values.tasks import PRIORITIES, ListedTask, TaskList, TaskStatus

if TYPE_CHECKING:
    from qmd.store import Reader

_OPEN: tuple[TaskStatus, ...] = ("open", "doing")
_DONE: tuple[TaskStatus, ...] = ("done", "cancelled")
#: How many days from today the words reach.
_AHEAD = {
    **dict.fromkeys(("overdue", "逾期", "过期"), -1),
    **dict.fromkeys(("today", "今天"), 0),
    **dict.fromkeys(("tomorrow", "明天"), 1),
    **dict.fromkeys(("week", "一周"), 7),
    **dict.fromkeys(("month", "一个月"), 30),
}
_HINT = "Write overdue, today, tomorrow, week, month, none, 3d, 2026-12 or 2026-12-01."


def task_list(
    reader: Reader,
    *,
    statuses: Sequence[TaskStatus],
    due: str | None,
    tags: Sequence[str],
    collection: str | None,
    limit: int,
    today: date,
) -> TaskList:
    """
    The tasks of the documents of a collection, or of all.

    Raises:
        CollectionNotFoundError: There is no such collection.
        InputError: ``due`` is no day.
    """
    selection = reader.select(Filters(collections=(collection,) if collection else ()))
    names = [tag.strip().lstrip("#").strip("/").lower() for tag in tags]
    which = _due_by(TaskFilter(statuses, names), due, today)
    listed = reader.tasks.listed(selection, which, limit=limit)
    infos = {each.id: each for each in reader.documents.by_ids([number for number, _ in listed])}
    return TaskList(
        tuple(
            ListedTask(
                infos[number],
                task.line,
                task.text,
                task.status,
                due=task.due,
                priority=PRIORITIES[task.priority - 1] if task.priority else None,
                scheduled=task.scheduled,
                start=task.start,
                finished=task.finished,
                tags=task.tags,
            )
            for number, task in listed
        ),
        reader.tasks.count(selection, which),
    )


def statuses(*, is_open: bool, done: bool) -> tuple[TaskStatus, ...]:
    """What is listed: tasks that are open, done or both; those that are open without either."""
    if done:
        return (*_OPEN, *_DONE) if is_open else _DONE
    return _OPEN


def _due_by(which: TaskFilter, due: str | None, today: date) -> TaskFilter:
    """
    The filter with the last day when tasks are due.

    Raises:
        InputError.
    """
    text = (due or "").strip().lower()
    if not text:
        return which
    if text in ("none", "any"):
        return which._replace(has_due=text == "any")
    ahead = _AHEAD.get(text)
    span = dates.span(text)
    try:
        if ahead is not None:
            last = today + timedelta(days=ahead)
        elif span is not None:
            last = today + span
        elif len(text) == len("2026-12"):
            first = date.fromisoformat(f"{text}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        else:
            last = date.fromisoformat(dates.filter_date(text)[:10])
    except (InputError, ValueError, OverflowError):
        raise InputError(
            engine_text("No day is written so: {text}", text=repr(text[:60])), hint=_HINT
        ) from None
    return which._replace(last=last.isoformat())
