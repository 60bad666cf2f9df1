"""The notes of days, weeks, months, quarters and years."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from qmd.errors import CollectionNotFoundError, NotFoundError, OutsideRootsError
from qmd.operations.arguments import DAY, InCollection
from qmd.operations.definition import Replied, operation
from qmd.values.days import PeriodicNote
from qmd.values.edits import EditedNote
from qmd.values.facts import Describe, InSchema, Shell
from qmd.values.printable import one_line

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

FAMILY = {"toolset": "graph", "group": "read"}

When = Annotated[
    str,
    Describe(
        "today, 2026-11-20, week, 2026-W47, last month, 2026-11, 2026-Q4 or 2026",
        zh="today、2026-11-20、week、2026-W47、last month、2026-11、2026-Q4 或 2026",
    ),
    InSchema(
        pattern=r"^((this|last|next) )?(week|month|quarter|year)$|^(today|yesterday|tomorrow)$"
        rf"|^{DAY}$|^20[0-9]{{2}}(-(W(0[1-9]|[1-4][0-9]|5[0-2])|Q[1-4]|0[1-9]|1[0-2]))?$"
    ),
    Shell("[WHEN]", positional=True),
]


def _note(replied: Replied) -> str:
    note: PeriodicNote = replied.value
    if not note.exists:
        return (
            f"There is no note of {note.period} yet: it would be {one_line(note.file)}\n"
            f"'qmd note day {note.period}', or the tool create_periodic_note, creates it."
        )
    text = f"{one_line(note.file)}\n\n{note.text}".rstrip("\n")
    if note.more_lines:
        next_line = len(note.text.splitlines()) + 1
        text += f"\n\n… {note.more_lines:,} more lines: get {one_line(note.file)}:{next_line}"
    return text


@operation(
    text=_note,
    command="day",
    other_names=("today",),
    examples=("qmd day", "qmd day yesterday", "qmd day 2026-11-20", "qmd day 'last week' --json"),
    title="Note of a day",
    zh="某日、某周、某月、某季或某年的笔记：按 Obsidian 日记插件的设置找到，不新建。",
    errors=(CollectionNotFoundError,),
)
def periodic_note(
    kb: KnowledgeBase, when: When = "today", collection: InCollection = None
) -> PeriodicNote:
    """
    Show the note of a day, a week or a month.

    Or of a quarter or a year. It lies where the vault's settings of daily and periodic notes say.
    Nothing is created.
    """
    return kb.periodic_note(when, collection=collection)


def _created(replied: Replied) -> str:
    note: EditedNote = replied.value
    file = one_line(note.file)
    if not note.written:
        return f"{file} exists; nothing was changed."
    text = f"Created {file}, {note.docid} (change {note.change})"
    return text if note.problem is None else f"{text}\nNot searchable yet: {note.problem}"


@operation(
    text=_created,
    command="note day",
    examples=("qmd note day", "qmd note day week", "qmd note day 2026-11-20"),
    title="New note of a day",
    zh="按模板新建某日、某周或某月的笔记；已有的保持不变。可撤销。",
    group="write",
    lane="write",
    bodies=({"when": "today"},),
    errors=(OutsideRootsError, CollectionNotFoundError, NotFoundError),
)
def create_periodic_note(
    kb: KnowledgeBase, when: When = "today", collection: InCollection = None
) -> EditedNote:
    """
    Create the note of a day, a week or a month from its template.

    Or of a quarter or a year. One that exists stays as it is. 'qmd undo' takes it back.
    """
    return kb.create_periodic_note(when, collection=collection)
