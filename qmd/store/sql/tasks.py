"""The tasks of documents, and the days when they are due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection, tag_among
from qmd.values.tasks import Task, TaskStatus

_COLUMNS = "line, status, text, tags, priority, due, scheduled, start, finished"
#: Without a priority a task comes behind those of medium priority, as in Obsidian Tasks.
_ORDER = "t.due IS NULL, t.due, coalesce(t.priority, 3.5), c.name, d.path, t.line"


class TaskFilter(NamedTuple):
    """
    Which tasks are listed.

    Attributes:
        statuses: One of these.
        tags: Each of them, in lower case, or a tag below it.
        first, last: The days, in ISO 8601, between which it is due; None for no limit.
        has_due: Whether it says when it is due; None for any.
    """

    statuses: Sequence[TaskStatus]
    tags: Sequence[str] = ()
    first: str | None = None
    last: str | None = None
    has_due: bool | None = None


def put(sql: Sql, documents: Iterable[tuple[int, Sequence[Task]]]) -> None:
    """Store the tasks of documents that have none stored: pairs of id and tasks."""
    sql.many(
        f"INSERT INTO tasks (document_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (document_id, *task._replace(tags=" ".join(task.tags)))  # type: ignore[arg-type]
            for document_id, tasks in documents
            for task in tasks
        ],
    )


class Tasks:
    """Lists the tasks of selected documents."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def listed(
        self, selection: Selection, which: TaskFilter, *, limit: int
    ) -> list[tuple[int, Task]]:
        """Ids of documents and tasks: by the day when they are due, priority, file and line."""
        condition, values = _condition(which)
        rows = self._sql.run(
            f"SELECT t.document_id, t.{_COLUMNS.replace(', ', ', t.')} {_joined(selection)}"
            f" AND {condition} ORDER BY {_ORDER} LIMIT ?",
            [*selection.values, *values, limit],
        )
        return [
            (document_id, Task(line, status, text, tuple(tags.split()), *days))
            for document_id, line, status, text, tags, *days in rows
        ]

    def count(self, selection: Selection, which: TaskFilter) -> int:
        """How many tasks `listed` lists without a limit."""
        condition, values = _condition(which)
        return self._sql.number(
            f"SELECT count(*) {_joined(selection)} AND {condition}", [*selection.values, *values]
        )

    def exist(self) -> bool:
        """Whether any document has a task."""
        return self._sql.first("SELECT 1 FROM tasks LIMIT 1", []) is not None


def _joined(selection: Selection) -> str:
    return (
        "FROM tasks t JOIN documents d ON d.id = t.document_id"
        f" JOIN collections c ON c.id = d.collection_id WHERE {selection.sql}"
    )


def _condition(which: TaskFilter) -> tuple[str, list[object]]:
    parts = [f"t.status IN ({', '.join('?' * len(which.statuses))})"]
    values: list[object] = [*which.statuses]
    for tag in which.tags:
        parts.append(tag_among("t.tags", tag, values))
    for day, sign in ((which.first, ">="), (which.last, "<=")):
        if day is not None:
            parts.append(f"t.due {sign} ?")
            values.append(day)
    if which.has_due is not None:
        parts.append(f"t.due IS {'NOT ' if which.has_due else ''}NULL")
    return " AND ".join(parts), values
