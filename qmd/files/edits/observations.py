"""Write a fact into a note, and take one out, as `qmd.parse.observations` finds them."""

from __future__ import annotations

import re
from datetime import date

from qmd.engine_text import engine_text
from qmd.errors import EditError
from qmd.files.edits.operations import append, in_words
from qmd.parse import frontmatter
from qmd.parse.markdown import outline
from qmd.parse.observations import MAX_TEXT, OBSERVATION, observation_lines, observation_of
from qmd.parse.sections import outline_of
from qmd.parse.tags import is_tag
from qmd.values.memory import NewFact, Observation
from qmd.values.printable import UNSAFE

HEADING = "Observations"
_MAX_SHOWN = 5
_SPACES = re.compile(r"\s+")


def fact_line(fact: NewFact, today: str) -> str:
    """
    The line that states a fact, in the form of basic-memory.

    Args:
        today: The day when it is noted, in ISO 8601.

    Raises:
        EditError: It would not be read as this fact.
    """
    text = _one_line(fact.text)
    if not text:
        raise EditError("Which fact?", hint="Write one sentence.")
    for tag in fact.tags:
        name = tag.strip().lstrip("#")
        if not is_tag(name) or _SPACES.search(name):
            raise EditError(
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
    match = OBSERVATION.match(line)
    if match is None or match["category"] != category:
        raise EditError(
            engine_text("No category is written so: {category}", category=repr(category[:60])),
            hint="It is a word or a few, such as decision, preference or fact.",
        )
    if len(match["text"]) > MAX_TEXT:
        raise EditError(
            engine_text(
                "The fact has {count} characters, more than {most}.",
                count=f"{len(match['text']):,}",
                most=f"{MAX_TEXT:,}",
            ),
            hint="Split it, or write a note.",
        )
    if observation_of(1, match).text != text:
        raise EditError(
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
    parsed = outline(text, frontmatter.split(text).body_start)
    for number, match in observation_lines(parsed):
        each = observation_of(number + 1, match)
        if (each.category, each.text) == (new.category, new.text):
            if _same(each, new):
                return text
            start = parsed.starts[number]
            end = start + len(parsed.lines[number].rstrip("\r\n"))
            indent = len(parsed.lines[number]) - len(parsed.lines[number].lstrip(" \t"))
            return text[: start + indent] + line + text[end:]
    headings = [each for each in outline_of(text) if each.path[-1] == HEADING]
    if len(headings) == 1:
        return append(text, line, "#".join(headings[0].path))
    return append(text, f"## {HEADING}\n{line}")


def new_note(title: str, line: str) -> str:
    """The text of a new note that states a fact."""
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'---\ntitle: "{escaped}"\ntype: note\n---\n\n# {title}\n\n## {HEADING}\n{line}\n'


def line_of(text: str, line: str) -> Observation | None:
    """The fact of a note that says the same as a line; None without one."""
    new = _observed(line)
    parsed = outline(text, frontmatter.split(text).body_start)
    for number, match in observation_lines(parsed):
        each = observation_of(number + 1, match)
        if (each.category, each.text) == (new.category, new.text):
            return each
    return None


def without_fact(text: str, fact: str) -> str:
    """
    A note without its only fact of this text.

    Args:
        fact: Its text, or a part of it that only one fact has.

    Raises:
        EditError: There is no such fact, or more than one.
    """
    words = " ".join(fact.split())
    parsed = outline(text, frontmatter.split(text).body_start)
    facts = {number: observation_of(number + 1, each) for number, each in observation_lines(parsed)}
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
    start, *ends = parsed.starts[containing[0] : containing[0] + 2]
    return text[:start] + text[ends[0] if ends else len(text) :]


def _observed(line: str) -> Observation:
    match = OBSERVATION.match(line)
    assert match is not None, line
    return observation_of(1, match)


def _same(one: Observation, other: Observation) -> bool:
    return (one.context, one.expires) == (other.context, other.expires)


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
    """Raises EditError: it is no day."""
    try:
        return date.fromisoformat(written.strip()[:10]).isoformat()
    except ValueError:
        raise EditError(
            engine_text("No day is written so: {text}", text=repr(written[:60])),
            hint="Write it as 2026-12-31.",
        ) from None
