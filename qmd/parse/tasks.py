"""
Finds the tasks of a text: list items that begin with ``[ ]``, or with ``TODO`` as in Logseq.

Dates and priorities are read as these programs write them: signs such as ``📅 2026-12-01`` and
``⏫`` of Obsidian Tasks, inline fields such as ``[due:: 2026-12-01]`` of Dataview, and Logseq's
``DEADLINE: <2026-12-01 Tue>`` and ``[#A]``.

Sources: "Tasks Emoji Format" and "Dataview Format" of Obsidian Tasks; "Tasks" of Logseq.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date

from qmd.parse.markdown import Outline
from qmd.parse.tags import tags_in
from qmd.values.tasks import PRIORITIES, Task, TaskStatus

#: Of one text; a longer list of tasks is data.
MAX_TASKS = 10_000
_MAX_TEXT = 1000  # characters of a task that are kept
_LOOKED_AT = 4000  # characters of a line in which dates are looked for

_WORDS: dict[str, TaskStatus] = {
    **dict.fromkeys(("TODO", "LATER", "WAITING", "WAIT"), "open"),
    **dict.fromkeys(("DOING", "NOW", "IN-PROGRESS"), "doing"),
    "DONE": "done",
    **dict.fromkeys(("CANCELED", "CANCELLED"), "cancelled"),
}
#: Any other sign in a box, such as ``[!]``, is that of an open task.
_BOXES: dict[str, TaskStatus] = {"x": "done", "X": "done", "-": "cancelled", "/": "doing"}
_WORD = rf"(?:{'|'.join(_WORDS)})(?=[ \t])"
#: A line that is a task: the sign in its box, or the word that begins it, and the text behind it.
TASK = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>.)\]"
    rf"|[-*] (?P<word>{_WORD}))(?:[ \t]+(?P<text>.*))?$"
)
#: What each task has in its line. (The patterns begin with plain characters, so that the search can
#: jump from one to the next.)
_SOMEWHERE = (
    re.compile(r"\[(?=.\](?:\s|$))"),
    re.compile(rf"- (?={_WORD})"),
    re.compile(rf"\* (?={_WORD})"),
)

_DAY = r"(\d{4}-\d\d-\d\d)"
_SIGNS = {
    **dict.fromkeys("📅📆🗓", "due"),
    **dict.fromkeys("⏳⌛", "scheduled"),
    "🛫": "start",
    **dict.fromkeys("✅❌", "finished"),
    "➕": "created",
}
_KEYS = {
    **{key: key for key in ("due", "scheduled", "start", "created", "priority", "repeat")},
    **dict.fromkeys(("completion", "cancelled"), "finished"),
}
_PRIORITY_SIGNS = "🔺⏫🔼🔽⏬"
_SIGNED = re.compile(rf"([{''.join(_SIGNS)}])\ufe0f?[ \t]*{_DAY}")
_PRIORITY = re.compile(rf"([{_PRIORITY_SIGNS}])\ufe0f?")
#: A rule of repetition ends where the next sign begins.
_REPEAT = re.compile(rf"🔁[^{''.join(_SIGNS)}{_PRIORITY_SIGNS}#\[]*")
_FIELD = re.compile(rf"[\[(]({'|'.join(_KEYS)})::[ \t]*([^\[\]()]{{1,60}})[\])]", re.IGNORECASE)
_LETTER = re.compile(r"\[#([ABC])\]")
_LETTERS = {"A": 2, "B": 3, "C": 4}
_BELOW = re.compile(rf"[ \t>]*(DEADLINE|SCHEDULED):[ \t]*<{_DAY}[^>]{{0,60}}>")


def task_lines(text: str, outline: Outline) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines outside code that are tasks: their numbers, from 0, and matches of `TASK`."""
    places = [match.start() for pattern in _SOMEWHERE for match in pattern.finditer(text)]
    if not places:
        return
    hidden = {number for start, end in outline.hidden for number in range(start, end)}
    first = outline.blocks[0].start if outline.blocks else len(outline.lines)
    for number in sorted({bisect_right(outline.starts, place) - 1 for place in places}):
        if number >= first and number not in hidden:
            match = TASK.match(outline.lines[number].rstrip("\r\n"))
            if match is not None:
                yield number, match


def find_tasks(text: str, outline: Outline, page_tags: Sequence[str]) -> tuple[Task, ...]:
    """
    The tasks of a text, in its order, at most `MAX_TASKS`.

    Args:
        page_tags: Those of the frontmatter, which each task has.
    """
    tasks: list[Task] = []
    for number, match in task_lines(text, outline):
        if len(tasks) == MAX_TASKS:
            break
        if match["text"]:  # else a template
            tasks.append(_task(outline.lines, number, match, page_tags))
    return tuple(tasks)


def status_of(task: re.Match[str]) -> TaskStatus:
    """The status that a match of `TASK` says."""
    box = task["box"]
    return _WORDS[task["word"]] if box is None else _BOXES.get(box, "open")


def _task(
    lines: Sequence[str], number: int, match: re.Match[str], page_tags: Sequence[str]
) -> Task:
    text = (match["text"] or "")[:_LOOKED_AT]
    fields: dict[str, str] = {}

    def field(each: re.Match[str]) -> str:
        fields.setdefault(_KEYS[each[1].lower()], each[2].strip().lower())
        return " "

    def signed(each: re.Match[str]) -> str:
        day = _day(each[2])
        if day is None:
            return each[0]
        fields.setdefault(_SIGNS[each[1]], day)
        return " "

    rest = _FIELD.sub(field, text) if "::" in text else text
    if not rest.isascii():
        rest = _REPEAT.sub(" ", _SIGNED.sub(signed, rest))
    priority, rest = _priority(rest, fields.get("priority", ""))
    if match["word"]:  # Logseq puts dates below a task
        for below in map(_BELOW.match, lines[number + 1 : number + 3]):
            if below is not None:
                fields.setdefault("due" if below[1] == "DEADLINE" else "scheduled", below[2])
    return Task(
        number + 1,
        status_of(match),
        " ".join(rest.split())[:_MAX_TEXT],
        tuple(dict.fromkeys(tag.lower() for tag in (*page_tags, *tags_in(text)))),
        priority,
        *(_day(fields.get(name, "")) for name in ("due", "scheduled", "start", "finished")),
    )


def _priority(text: str, word: str) -> tuple[int | None, str]:
    """The priority that a word or a sign in the text says, and the text without signs."""
    priority = PRIORITIES.index(word) + 1 if word in PRIORITIES else None
    if not text.isascii() and (sign := _PRIORITY.search(text)):
        return _PRIORITY_SIGNS.index(sign[1]) + 1, _PRIORITY.sub(" ", text)
    if letter := _LETTER.search(text):
        return _LETTERS[letter[1]], _LETTER.sub(" ", text, count=1)
    return priority, text


def _day(written: str) -> str | None:
    """A day of the calendar in ISO 8601; None for other texts."""
    try:
        return date.fromisoformat(written[:10]).isoformat()
    except ValueError:
        return None
