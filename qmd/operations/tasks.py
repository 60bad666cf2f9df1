"""The tasks of all notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from qmd.errors import CollectionNotFoundError
from qmd.operations.arguments import DAY, InCollection, Limit
from qmd.operations.definition import Row, Styled, operation
from qmd.values.facts import Describe, InSchema, Shell
from qmd.values.search import Tags
from qmd.values.tasks import ListedTask, TaskList

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

FAMILY = {"toolset": "graph", "group": "read"}

_BOXES = {"open": "[ ]", "doing": "[/]", "done": "[x]", "cancelled": "[-]"}


def _tasks(listed: TaskList) -> Iterator[Row]:
    width = max((len(task.due or "") for task in listed.tasks), default=0)
    for task in listed.tasks:
        due = Styled(f"{task.due or '':<{width}}", "dim")
        priority = "" if task.priority is None else f"({task.priority}) "
        yield Row(
            (due, f"{'  ' if width else ''}{_BOXES[task.status]} ", priority, task.text),
            task.file,
            task.line,
        )


def _lines(listed: TaskList) -> Iterator[str]:
    for task in listed.tasks:
        yield f"{task.file}:{task.line} {_BOXES[task.status]} {task.text}{_facts(task)}"


def _facts(task: ListedTask) -> str:
    facts = [
        f"{name} {value}"
        for name in ("due", "scheduled", "start", "finished", "priority")
        if (value := getattr(task, name)) is not None
    ]
    return f" ({', '.join(facts)})" if facts else ""


@operation(
    rows=_tasks,
    lines=_lines,
    heading="Tasks: {total:,}",
    when_empty="There is no such task.",
    zh="所有笔记中的任务（- [ ] 与 TODO），按到期日排序；用 edit_note 的 tick 勾选。",
    examples=(
        "qmd tasks",
        "qmd tasks --due week --tag work",
        "qmd tasks --done -n 20",
        "qmd tasks --due overdue --json",
    ),
    errors=(CollectionNotFoundError,),
)
def tasks(
    kb: KnowledgeBase,
    due: Annotated[
        str | None,
        Describe(
            "Due by then: overdue, today, week, 3d, a date; or any, none",
            zh="到此为止到期：overdue、today、week、3d 或日期；any 为有到期日，none 为没有",
        ),
        InSchema(
            pattern=r"^(|overdue|today|tomorrow|week|month|any|none|[0-9]{1,4}(d|w|mo)"
            rf"|20[0-9]{{2}}-(0[1-9]|1[0-2])|{DAY})$"
        ),
        Shell("WHEN"),
    ] = None,
    tags: Tags = (),
    open: Annotated[  # noqa: A002 - the name on the wire
        bool, Describe("Those to be done; the default", zh="未完成的；默认")
    ] = False,
    done: Annotated[
        bool,
        Describe("Those done or cancelled; both: all", zh="已完成或已取消的；两者并用为全部"),
    ] = False,
    collection: InCollection = None,
    limit: Limit = 50,
) -> TaskList:
    """
    List the tasks of all notes, by when they are due.

    A task is a list item with a box (- [ ]) or TODO. Its days and priority are read as Obsidian
    Tasks, Dataview and Logseq write them. A search takes task:open and due:<2026-12-01.
    """
    return kb.tasks(due=due, tags=tags, open=open, done=done, collection=collection, limit=limit)
