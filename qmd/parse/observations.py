"""
Finds the facts that a text states one by one, and the list items that relate its note to others.

They are written as basic-memory writes them: ``- [decision] We use SQLite #db (source)`` and
``- part_of [[Project]]``. In the parentheses, between semicolons, a day is when the fact was noted,
and ``until 2027-01-01`` the last day when it holds.

Source: "Note Format Reference" of basic-memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from qmd.parse.markdown import Outline
from qmd.parse.tags import tags_in
from qmd.values.documents import Link
from qmd.values.memory import Observation

#: Of one text; a longer list of facts is data.
MAX_OBSERVATIONS = 10_000
#: Characters of a fact that are kept, and of its line that are looked at.
MAX_TEXT = 2000
_MAX_CATEGORY = 60

_ITEM = r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+"
# One letter at least: ``[1]`` is a reference, ``[00:11]`` a time. Of one character: a task.
_IN_BRACKETS = rf"[^\[\]()^!\r\n][^\[\]()\r\n]{{1,{_MAX_CATEGORY - 1}}}"
_CATEGORY = rf"(?=[^\[\]\r\n]{{0,{_MAX_CATEGORY - 1}}}[^\W\d_]){_IN_BRACKETS}"
#: A line that is a fact: its category, and the text behind it with its context.
OBSERVATION = re.compile(rf"{_ITEM}\[(?P<category>{_CATEGORY})\][ \t]+(?P<text>\S.*)$")
_SOMEWHERE = re.compile(rf"\[(?={_IN_BRACKETS}\][ \t])")
#: A relation is one word, or words in quotes; a colon may follow, or two as in Dataview.
_RELATION = re.compile(
    rf"{_ITEM}(?:(?P<word>[^\W\d_][\w/-]{{0,59}})|(?P<quote>[\"'])(?P<words>[^\"'\[\]]{{1,60}})"
    r"(?P=quote))(?:::?)?[ \t]+\[\[[^\[\]]+\]\][ \t]*(?:\([^()]*\))?[ \t]*$"
)
_UNTIL = re.compile(
    r"(?:valid[ \t]+)?(?:until|expires)[ \t:]+(\S+)|(?:直到|有效期至|至)[ \t]*(\S+)", re.I
)


def may_have_observations(text: str) -> bool:
    """Whether a text may state facts; cheap."""
    for match in _SOMEWHERE.finditer(text):
        before = match.start() - 1
        while before > 0 and text[before] in " \t":
            before -= 1
        if before >= 0 and text[before] in "-*+.)":  # the end of an item's mark
            return True
    return False


def observation_lines(outline: Outline) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines outside code that are facts: their numbers, from 0, and matches of the pattern."""
    hidden = {number for start, end in outline.hidden for number in range(start, end)}
    first = outline.blocks[0].start if outline.blocks else len(outline.lines)
    for number in range(first, len(outline.lines)):
        match = OBSERVATION.match(outline.lines[number].rstrip("\r\n"))
        if match is not None and number not in hidden:
            yield number, match


def find_observations(outline: Outline, page_tags: Sequence[str]) -> tuple[Observation, ...]:
    """
    The facts of a text, in its order, at most `MAX_OBSERVATIONS`.

    Args:
        page_tags: Those of the frontmatter, which each fact has.
    """
    observations: list[Observation] = []
    for number, match in observation_lines(outline):
        if len(observations) == MAX_OBSERVATIONS:
            break
        observations.append(observation_of(number + 1, match, page_tags))
    return tuple(observations)


def observation_of(line: int, match: re.Match[str], page_tags: Sequence[str] = ()) -> Observation:
    """The fact that a match of `OBSERVATION` is."""
    text, context = _without_context(match["text"][:MAX_TEXT].rstrip())
    noted = expires = None
    rest = []
    for part in filter(None, map(str.strip, re.split("[;；]", context))):
        until = _UNTIL.fullmatch(part)
        if until and (day := _day(until[1] or until[2])):
            expires = day
        elif noted is None and (day := _day(part)):
            noted = day
        else:
            rest.append(part)
    return Observation(
        line,
        " ".join(match["category"].lower().split()),
        " ".join(text.split()),
        tuple(dict.fromkeys(tag.lower() for tag in (*page_tags, *tags_in(text)))),
        "; ".join(rest),
        noted,
        expires,
    )


def with_relations(links: Sequence[Link], outline: Outline) -> tuple[Link, ...]:
    """The links of a text, those in list items that relate the note to another with their word."""
    related = list(links)
    number = 0
    for place, link in enumerate(links):
        if link.kind == "wikilink" and link.line != number:  # a relation is the only link there
            number = link.line
            match = _RELATION.match(outline.lines[number - 1][:MAX_TEXT].rstrip("\r\n"))
            if match is not None:
                relation = match["word"] or " ".join(match["words"].split())
                related[place] = link._replace(relation=relation)
    return tuple(related)


def _without_context(text: str) -> tuple[str, str]:
    """A fact, and what the parentheses at its end hold; the whole text if there is nothing else."""
    depth = 0
    for position in range(len(text) - 1, 0, -1) if text.endswith((")", "）")) else ():
        depth += (text[position] in ")）") - (text[position] in "(（")
        if not depth:
            # A word and its plural, as in "file(s)", are no context.
            if text[position - 1] not in " \t" and text[position] == "(":
                break
            return text[:position].rstrip(), text[position + 1 : -1]
    return text, ""


def _day(written: str) -> str | None:
    """A day of the calendar in ISO 8601; None for other texts."""
    try:
        return date.fromisoformat(written).isoformat() if len(written) == 10 else None
    except ValueError:
        return None
