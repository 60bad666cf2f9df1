"""
Edits the text of a note: its passages and sections, its tasks, its facts.

All functions are pure, keep every character outside of what they change, and give the new text the
line ends of the note. They raise `EditError` if the note has no such place, or more than one, and
`InputError` for an argument that no note could take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from qmd.engine_text import engine_text
from qmd.errors import EditError, InputError
from qmd.files.edits.diff import kept_lines
from qmd.files.edits.text_file import LINE_END, UniformText, line_end, with_line_ends
from qmd.parse import frontmatter, notation
from qmd.parse.markdown import Outline, outline
from qmd.parse.sections import Section, heading_path, list_item, outline_of, section
from qmd.values.documents import NewFact, Observation
from qmd.values.text import UNSAFE

#: The most occurrences of a text that are counted.
MAX_COUNTED = 100
_MAX_LINES_NAMED = 10
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LIST_LINE = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]|[ \t]*[|>]")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^\r\n]*)")


def replace_once(text: str, old: str, new: str) -> str:
    """Replace the only occurrence of ``old``; all line ends count as equal."""
    part = with_line_ends(old, "\n")
    if not part:
        raise InputError("The text to replace is empty.", hint="Use append or insert_after to add.")
    uniform = UniformText(text)
    positions = _positions(uniform.text, part)
    if not positions:
        raise _no_occurrence(uniform.text, part)
    if len(positions) > 1:
        lines = [uniform.text.count("\n", 0, position) + 1 for position in positions]
        at_least = "at least " if len(positions) == MAX_COUNTED else ""
        raise EditError(
            f"The text to replace occurs {at_least}{len(positions)} times, at {in_words(lines)}.",
            hint="Give more of the text around it, so that it occurs once.",
        )
    start = uniform.original_position(positions[0])
    end = uniform.original_position(positions[0] + len(part))
    return text[:start] + with_line_ends(new, line_end(text)) + text[end:]


def replace_all(text: str, new: str) -> str:
    """
    Replace the whole text. ``new`` has ``\\n`` at the end of each line, whatever the note has.

    Lines that stay keep their line ends; the others get those that most lines have.
    """
    if new == with_line_ends(text, "\n"):
        return text
    end = line_end(text)
    if text.count(end) == len(LINE_END.findall(text)):
        return with_line_ends(new, end)
    ends = LINE_END.findall(text)
    kept = {line: number for number, line in kept_lines(with_line_ends(text, "\n"), new)}
    *lines, last = new.split("\n")
    ended = [
        line + (ends[kept[number]] if number in kept else end) for number, line in enumerate(lines)
    ]
    replaced = "".join([*ended, last])
    # CR before an empty line that ends with LF would be one line end, CR LF.
    is_whole = with_line_ends(replaced, "\n") == new
    return replaced if is_whole else with_line_ends(new, end)


def replace_section(text: str, heading: str, content: str) -> str:
    """
    Replace what stands below a heading, up to the next heading of its level or a higher one.

    The heading and the blank lines around the content stay. If ``content`` begins with the heading
    itself, that line is left out.
    """
    place = find_section(text, heading)
    end = line_end(text)
    start, stop = _trimmed(text, place.body_char, place.end_char)
    content = with_line_ends(_without_heading(content, place), end)
    if content.strip():
        content = content.rstrip("\r\n")
    separated = text[:start]
    if separated and not separated.endswith(("\n", "\r")):  # the heading is the last line
        separated += end
    rest = text[stop:]
    return separated + content + _line_end_before(rest, content, end) + rest


def insert_before(text: str, heading: str, content: str) -> str:
    """Insert lines above a heading, with a blank line between."""
    at = find_section(text, heading).start_char
    return _inserted(text, at, content)


def insert_after(text: str, heading: str, content: str) -> str:
    """Insert lines directly below a heading, after the blank lines that follow it."""
    place = find_section(text, heading)
    at, _ = _trimmed(text, place.body_char, place.end_char)
    return _inserted(text, at, content)


def append(text: str, content: str, heading: str | None = None) -> str:
    """Add lines at the end of the note, or of the section below a heading."""
    if heading is None:
        return _inserted(text, len(text), content)
    place = find_section(text, heading)
    _, at = _trimmed(text, place.body_char, place.end_char)
    return _inserted(text, at, content)


def prepend(text: str, content: str) -> str:
    """Insert lines at the beginning of the note, below its frontmatter."""
    require_end_of_frontmatter(text)
    start = frontmatter.split(text).body_start
    if start:
        start += len(_blank_lines(text, start))
    return _inserted(text, start, content)


def require_end_of_frontmatter(text: str) -> None:
    """Raises EditError: properties begin the text, and no line ends them."""
    if frontmatter.is_unended(text):
        raise EditError(
            "The frontmatter never ends, so its properties are text.",
            hint=f"Write the line '{text[:3]}' below them, with the action replace.",
        )


def require_same_frontmatter(text: str, new: str) -> None:
    """Raises EditError: a line that an edit adds would make all above it frontmatter."""
    if frontmatter.is_unended(text) and frontmatter.split(new).body_start:
        raise EditError(
            f"The frontmatter never ends: the new line '{text[:3]}' would end it.",
            hint=f"First write '{text[:3]}' below its properties, with the action replace.",
        )


def find_section(text: str, heading: str) -> Section:
    """The only section of this heading (``Heading`` or ``Heading#Sub``). Raises EditError."""
    names = heading_path(heading)
    place = section(text, names)
    if place is None:
        headings = ["#".join(each.path) for each in outline_of(text)[:20]]
        listed = "; ".join(headings) if headings else "none"
        raise EditError(f"The note has no heading {heading!r}.", hint=f"Its headings: {listed}")
    if place.others:
        lines = sorted((place.start_line, *place.others))
        raise EditError(
            f"The note has the heading {heading!r} {len(lines)} times, at {in_words(lines)}.",
            hint="Name the headings above it as well (Heading#Sub), or replace a text instead.",
        )
    return place


def in_words(lines: list[int]) -> str:
    """``line 3``, ``lines 3, 7 and 9``, or the first of many; each line once."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1:
        return f"line {lines[0]}"
    if len(lines) > _MAX_LINES_NAMED:
        return f"lines {', '.join(map(str, lines[:_MAX_LINES_NAMED]))} and more"
    return f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


# --- replacing ---------------------------------------------------------------------------


def _positions(text: str, part: str) -> list[int]:
    """Where a part occurs, overlaps included; at most `MAX_COUNTED` positions."""
    positions: list[int] = []
    at = text.find(part)
    while at >= 0 and len(positions) < MAX_COUNTED:
        positions.append(at)
        at = text.find(part, at + 1)
    return positions


def _no_occurrence(text: str, part: str) -> EditError:
    first = next((line.strip() for line in part.split("\n") if line.strip()), "")
    similar = [
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if first and line.strip() == first
    ]
    hint = "Read the note again; blanks and letter case must be the same."
    if similar:
        hint = (
            f"Its first line stands alone at {in_words(similar)}; compare blanks and what follows."
        )
    return EditError("The text to replace does not occur in the note.", hint=hint)


# --- inserting ---------------------------------------------------------------------------


def _inserted(text: str, at: int, content: str) -> str:
    """
    Insert whole lines at the beginning of a line or at the end of the text.

    A blank line is put between them and a text that would run on, but not between list items.
    """
    end = line_end(text)
    content = with_line_ends(content, end)
    before, after = text[:at], text[at:]
    if before and not before.endswith(("\n", "\r")):
        before += end
    if after and not content.endswith(("\n", "\r")):
        content += end
    if not after and text.endswith(("\n", "\r")) and not content.endswith(("\n", "\r")):
        content += end
    above = "" if _runs_apart(_last_line(before), _first_line(content)) else end
    below = "" if _runs_apart(_last_line(content), _first_line(after)) else end
    return before + above + content + below + after


def _runs_apart(upper: str, lower: str) -> bool:
    """Whether two lines stay what they are without a blank line between them."""
    if not upper.strip() or not lower.strip():
        return True
    if _HEADING.match(upper):
        return True
    return bool(_LIST_LINE.match(upper) and _LIST_LINE.match(lower))


def _last_line(text: str) -> str:
    lines = text[-2000:].splitlines()
    return lines[-1] if lines else ""


def _first_line(text: str) -> str:
    lines = text[:2000].splitlines()
    return lines[0] if lines else ""


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span of whole lines without the blank lines at both its ends; both stay in the span."""
    first = min(end, start + len(_blank_lines(text, start)))
    body = text[first:end]
    kept = body.rstrip()
    if not kept:
        return first, first
    match = re.compile(r"[ \t]*(?:\r\n|\r|\n)?").match(body, len(kept))
    assert match is not None  # it matches the empty text
    return first, first + match.end()


def _blank_lines(text: str, start: int) -> str:
    match = _BLANK_LINES.match(text, start)
    assert match is not None  # it matches the empty text
    return match[0]


def _without_heading(content: str, place: Section) -> str:
    """The content without a first line that repeats the heading of the section."""
    match = _HEADING.match(content)
    if match is None or len(match[1]) != place.heading.level:
        return content
    if match[2].strip().rstrip("#").strip() != place.heading.text:
        return content
    return content[match.end() :].lstrip("\r\n")


def _line_end_before(rest: str, content: str, end: str) -> str:
    """What follows a replaced content: a line end, unless nothing stands there."""
    if not content:
        return ""
    if content.endswith(("\n", "\r")):
        return ""
    return end


# --- tasks ------------------------------------------------------------------------------

_MAX_SHOWN = 5


def set_task(text: str, task: str | None, line: int | None, *, done: bool) -> str:
    """
    Tick or untick the only task of a text.

    Args:
        done: Whether the task gets ``[x]`` or ``[ ]``; where it begins with a word, DONE or TODO.
        task: The text after the box, or a part of it that only one task has.
        line: The line of the task, counted from 1. With ``task``, which the task there must have,
            the text need not be that of only one.

    Raises:
        EditError: There is no such task, or more than one, or the line has another.
        InputError: Neither names a task.
    """
    words = (task or "").strip()
    if not words and (task is not None or line is None):
        raise InputError("Which task?", hint="Give its text, or its line.")
    parsed, tasks = _tasks(text)
    number = _with_text(tasks, words) if line is None else _at_line(tasks, line, words)
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
    """A line that is a task: its number, from 1, the text after its box, whether it is ticked."""

    line: int
    text: str
    is_done: bool


def tasks_of(text: str) -> list[TaskLine]:
    """The tasks of a text, in its order."""
    return [
        TaskLine(number + 1, (match["text"] or "").strip(), notation.status_of(match) == "done")
        for number, match in _tasks(text)[1].items()
    ]


def set_seen_task(text: str, *, done: bool, task: str, line: int) -> str:
    """
    Tick or untick a task that a person sees, though the note may have changed since.

    Args:
        task: The text after the box, as the person sees it.
        line: Where it stood, counted from 1. If another line is there now, the only task with
            this text is meant.

    Raises:
        EditError: There is no such task any more, or more than one.
    """
    lines = text.split("\n")
    match = notation.TASK.match(lines[line - 1].rstrip("\r")) if 0 < line <= len(lines) else None
    is_there = match is not None and (match["text"] or "").strip() == task.strip()
    return set_task(text, task, line if is_there else None, done=done)


def _tasks(text: str) -> tuple[Outline, dict[int, re.Match[str]]]:
    """The outline of a text, and its tasks by the number of the line, from 0."""
    parsed = outline(text, frontmatter.split(text).body_start)
    return parsed, dict(notation.task_lines(text, parsed))


def _at_line(tasks: dict[int, re.Match[str]], line: int, words: str) -> int:
    if line - 1 in tasks:
        there = (tasks[line - 1]["text"] or "").strip()
        if words not in there:
            raise EditError(
                engine_text(
                    "The task in line {line} is another: {task}", line=line, task=there[:80]
                ),
                hint="Give the line where it is now, or its text alone.",
            )
        return line - 1
    near = sorted(tasks, key=lambda number: abs(number - line + 1))[:_MAX_SHOWN]
    hint = _listed(tasks, sorted(near))
    raise EditError(engine_text("Line {line} is no task.", line=line), hint=hint)


def _with_text(tasks: dict[int, re.Match[str]], words: str) -> int:
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
    hint = _listed(tasks, sorted(tasks)[:_MAX_SHOWN])
    raise EditError(engine_text("The note has no task {words}.", words=f"{words!r}"), hint=hint)


def _listed(tasks: dict[int, re.Match[str]], numbers: list[int]) -> str:
    """The hint that shows some of the tasks of a note."""
    texts = ((number + 1, (tasks[number]["text"] or "")[:80]) for number in numbers)
    listed = "; ".join(f"line {line}: {text}" for line, text in texts)
    return f"Tasks: {listed}" if listed else "The note has no tasks."


# --- facts ------------------------------------------------------------------------------

HEADING = "Observations"
_HEADING_LINE = f"## {HEADING}"
#: Also as formatters close it.
_HEADING_OF_FACTS = re.compile(rf"{_HEADING_LINE}(?:[ \t]+#+)?")
_SPACES = re.compile(r"\s+")


def fact_line(fact: NewFact, today: str) -> str:
    """
    The line that states a fact, in the form of basic-memory.

    Args:
        today: The day when it is noted, in ISO 8601.

    Raises:
        InputError: It would not be read as this fact.
    """
    text = _one_line(fact.text)
    if not text:
        raise InputError("Which fact?", hint="Write one sentence.")
    for tag in fact.tags:
        name = tag.strip().lstrip("#")
        if not notation.is_tag(name) or _SPACES.search(name):
            raise InputError(
                engine_text("No tag is written so: {tag}", tag=repr(tag[:60])),
                hint="A tag has letters, digits, -, _ and /, such as work/plans.",
            )
        if f"#{name.lower()}" not in text.lower().split():
            text += f" #{name}"
    context = [today, *filter(None, [_in_context(fact.source)])]
    if fact.until is not None:
        context.append(f"until {_day(fact.until)}")
    category = _one_line(fact.category).strip("[]")
    line = f"- [{category}] {text} ({'; '.join(context)})"
    match = notation.OBSERVATION.match(line)
    if match is None or match["category"] != category:
        raise InputError(
            engine_text("No category is written so: {category}", category=repr(category[:60])),
            hint="It is a word or a few, such as decision, preference or fact.",
        )
    if len(match["text"]) > notation.MAX_TEXT:
        raise InputError(
            engine_text(
                "The fact has {count} characters, more than {most}.",
                count=f"{len(match['text']):,}",
                most=f"{notation.MAX_TEXT:,}",
            ),
            hint="Split it, or write a note.",
        )
    if notation.observation_of(1, match).text != text:
        raise InputError(
            "The fact ends in parentheses that are read as its source.",
            hint="Write it without them.",
        )
    return line


def with_fact(text: str, line: str) -> str:
    """
    A note with a fact, below the heading ``Observations`` if it has one, else at its end.

    A line with the same category and text is replaced.
    """
    new = _observed(line)
    parsed, facts = _facts(text)
    for number, each in facts.items():
        if (each.category, each.text) == (new.category, new.text):
            if (each.context, each.expires) == (new.context, new.expires):
                return text
            start = parsed.starts[number]
            end = start + len(parsed.lines[number].rstrip("\r\n"))
            indent = len(parsed.lines[number]) - len(parsed.lines[number].lstrip(" \t"))
            return text[: start + indent] + line + text[end:]
    headings = [each for each in outline_of(text) if each.path[-1] == HEADING]
    if len(headings) == 1:
        return append(text, line, "#".join(headings[0].path))
    return append(text, f"{_HEADING_LINE}\n{line}")


def new_note(title: str, line: str) -> str:
    """The text of a new note that states a fact."""
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'---\ntitle: "{escaped}"\ntype: note\n---\n\n# {title}\n\n{_HEADING_LINE}\n{line}\n'


def line_of(text: str, line: str) -> Observation | None:
    """The fact of a note that says the same as a line; None without one."""
    new = _observed(line)
    facts = _facts(text)[1].values()
    same = (each for each in facts if (each.category, each.text) == (new.category, new.text))
    return next(same, None)


def without_fact(text: str, fact: str) -> str:
    """
    A note without its only fact of this text, and without what is inside its list item; with the
    last below it goes the heading of facts.

    Args:
        fact: Its text, or a part of it that only one fact has.

    Raises:
        EditError: There is no such fact, or more than one, or other facts are inside it.
    """
    words = " ".join(fact.split())
    facts = _facts(text)[1]
    same = [
        number
        for number, each in facts.items()
        if words in (each.text, f"[{each.category}] {each.text}")
    ]
    containing = same or [number for number, each in facts.items() if words in each.text]
    if not words or not containing:
        listed = "; ".join(
            f"line {number + 1}: {each.text[:80]}"
            for number, each in list(facts.items())[:_MAX_SHOWN]
        )
        raise EditError(
            engine_text("The note states no such fact: {fact}", fact=repr(words[:200])),
            hint=f"Its facts: {listed}" if listed else "The note states no facts.",
        )
    if len(containing) > 1:
        raise EditError(
            f"{len(containing)} facts have this text, at"
            f" {in_words([number + 1 for number in containing])}.",
            hint="Give the whole text of one, with its category: [category] fact.",
        )
    start, end = _item_of_fact(text, containing[0] + 1, [number + 1 for number in facts])
    without_heading = _without_heading_of_facts(text, start, end)
    return text[:start] + text[end:] if without_heading is None else without_heading


def _item_of_fact(text: str, line: int, facts: list[int]) -> tuple[int, int]:
    """
    Where the list item of the fact at a line begins and ends.

    Raises:
        EditError: Others of the facts at these lines are inside it.
    """
    item = list_item(text, line)
    inside = [each for each in facts if item.start_line < each < item.end_line]
    if inside:
        raise EditError(
            engine_text("Other facts are inside this one, at {lines}.", lines=in_words(inside)),
            hint="Forget these first, or move them out of its list item.",
        )
    return item.start_char, item.end_char


def _without_heading_of_facts(text: str, start: int, end: int) -> str | None:
    """
    A text without a span of lines, and without the heading above it that `with_fact` writes.

    Returns:
        None if another heading stands above it, or anything else below this one.
    """
    *lines, heading = text[:start].rstrip().splitlines(keepends=True) or [""]
    below = text[end:].lstrip("\r\n")
    next_heading = _HEADING.match(below)
    has_more = below.strip() and (next_heading is None or len(next_heading[1]) > 2)
    if not _HEADING_OF_FACTS.fullmatch(heading) or has_more:
        return None
    above = "".join(lines).rstrip()
    between = line_end(text) if text.endswith(("\n", "\r")) or below.strip() else ""
    if not below.strip():
        return above + between if above else ""
    return above + between * 2 + below if above else below


def _facts(text: str) -> tuple[Outline, dict[int, Observation]]:
    """The outline of a text, and its facts by the number of the line, from 0."""
    parsed = outline(text, frontmatter.split(text).body_start)
    return parsed, {
        number: notation.observation_of(number + 1, match)
        for number, match in notation.observation_lines(parsed)
    }


def _observed(line: str) -> Observation:
    match = notation.OBSERVATION.match(line)
    assert match is not None, line
    return notation.observation_of(1, match)


def _one_line(text: str) -> str:
    """A text on one line, without characters that steer a terminal or turn the line around."""
    return " ".join(re.sub(UNSAFE, " ", text).split())


def _in_context(source: str) -> str:
    """A source without the signs that end it: in an address they are escaped."""
    source = _one_line(source).replace(";", ",").replace("；", "，")
    if " " not in source and "://" in source:
        return source.replace("(", "%28").replace(")", "%29")
    return source.translate(str.maketrans("()（）", "[]［］"))


def _day(written: str) -> str:
    """Raises InputError: it is no day."""
    try:
        return date.fromisoformat(written.strip()[:10]).isoformat()
    except ValueError:
        raise InputError(
            engine_text("No day is written so: {text}", text=repr(written[:60])),
            hint="Write it as 2026-12-31.",
        ) from None
