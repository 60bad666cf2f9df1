"""Tick and untick tasks, as `qmd.parse.tasks` finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qmd.engine_text import engine_text
from qmd.errors import EditError
from qmd.files.edits.operations import in_words
from qmd.parse import frontmatter
from qmd.parse.markdown import Outline, outline
from qmd.parse.tasks import TASK, status_of, task_lines

_MAX_SHOWN = 5


def set_task(text: str, task: str | None, line: int | None, *, done: bool) -> str:
    """
    Tick or untick the only task of a text.

    Args:
        done: Whether the task gets ``[x]`` or ``[ ]``; where it begins with a word, DONE or TODO.
        task: The text behind the box, or a part of it that only one task has; ``line`` comes first.
        line: The line of the task, counted from 1.

    Raises:
        EditError: There is no such task, or more than one.
    """
    parsed, tasks = _tasks(text)
    number = _at_line(tasks, line) if line is not None else _with_text(tasks, task or "")
    match = tasks[number]
    if match["word"] is not None:
        if (match["word"] == "DONE") is done:
            return text
        sign, new = "word", "DONE" if done else "TODO"
    elif match["box"] in ("xX" if done else " "):
        return text
    else:
        sign, new = "box", "x" if done else " "
    start, end = (parsed.starts[number] + at for at in match.span(sign))
    return text[:start] + new + text[end:]


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A line that is a task: its number, from 1, the text behind its box, whether it is ticked."""

    line: int
    text: str
    is_done: bool


def tasks_of(text: str) -> list[TaskLine]:
    """The tasks of a text, in its order."""
    return [
        TaskLine(number + 1, (match["text"] or "").strip(), status_of(match) == "done")
        for number, match in _tasks(text)[1].items()
    ]


def set_seen_task(text: str, *, done: bool, task: str, line: int) -> str:
    """
    Tick or untick a task that a person sees, though the note may have changed since.

    Args:
        task: The text behind the box, as the person sees it.
        line: Where it stood, counted from 1. If another line is there now, the only task with
            this text is meant.

    Raises:
        EditError: There is no such task any more, or more than one.
    """
    lines = text.split("\n")
    match = TASK.match(lines[line - 1].rstrip("\r")) if 0 < line <= len(lines) else None
    is_there = match is not None and (match["text"] or "").strip() == task.strip()
    return set_task(text, task, line if is_there else None, done=done)


def _tasks(text: str) -> tuple[Outline, dict[int, re.Match[str]]]:
    """The outline of a text, and its tasks by the number of the line, from 0."""
    parsed = outline(text, frontmatter.split(text).body_start)
    return parsed, dict(task_lines(text, parsed))


def _at_line(tasks: dict[int, re.Match[str]], line: int) -> int:
    if line - 1 in tasks:
        return line - 1
    near = sorted(tasks, key=lambda number: abs(number - line + 1))[:_MAX_SHOWN]
    hint = "The note has no tasks." if not near else f"Tasks: {_listed(tasks, sorted(near))}"
    raise EditError(engine_text("Line {line} is no task.", line=line), hint=hint)


def _with_text(tasks: dict[int, re.Match[str]], task: str) -> int:
    words = task.strip()
    if not words:
        raise EditError("Which task?", hint="Give its text, or its line.")
    texts = {number: (match["text"] or "").strip() for number, match in tasks.items()}
    same = [number for number, text in texts.items() if text == words]
    containing = same or [number for number, text in texts.items() if words in text]
    if len(containing) == 1:
        return containing[0]
    if containing:
        lines = in_words([number + 1 for number in containing])
        raise EditError(
            f"{len(containing)} tasks have this text, at {lines}.", hint="Give the line instead."
        )
    hint = "The note has no tasks."
    if tasks:
        hint = f"Tasks: {_listed(tasks, sorted(tasks)[:_MAX_SHOWN])}"
    raise EditError(engine_text("The note has no task {words}.", words=f"{words!r}"), hint=hint)


def _listed(tasks: dict[int, re.Match[str]], numbers: list[int]) -> str:
    texts = ((number + 1, (tasks[number]["text"] or "")[:80]) for number in numbers)
    return "; ".join(f"line {line}: {text}" for line, text in texts)
