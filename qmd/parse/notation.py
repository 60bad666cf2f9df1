"""Reads what a text says by notation: tags and aliases, tasks, facts and relations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from qmd.parse.links import WrittenLink
from qmd.parse.markdown import Outline
from qmd.values.documents import PRIORITIES, Link, Observation, Task, TaskStatus

# A tag begins after white space and has letters of any script, digits, "_", "-", "/" and emoji;
# other punctuation, Chinese punctuation too, ends it. (The pattern begins with "#" so that the
# search can jump from one "#" to the next.)
_TAG = re.compile("#(?<![^\\s]#)((?:[\\w/\\-]|[\u2600-\u27bf\ufe0f\u200d\U0001f1e6-\U0001faff])+)")
_LETTER_OR_EMOJI = re.compile("[^\\W\\d_]|[\u2600-\u27bf\U0001f1e6-\U0001faff]")
_LIST_BREAK = re.compile(r"[,，、\s]+")
_ALIAS_BREAK = re.compile(r"[,，]")

# Notes contain C sources without fences; these directives are not tags.
_DIRECTIVES = frozenset(
    ("include", "define", "undef", "ifdef", "ifndef", "endif", "elif", "pragma")
)


def may_have_tags(text: str) -> bool:
    """Whether the text has something that looks like a tag, even in code or in a link."""
    return _TAG.search(text) is not None


def is_tag(name: str) -> bool:
    """Whether characters after ``#`` are a tag, and not a number or a directive of C."""
    tag = name.strip("/")
    return tag not in _DIRECTIVES and _LETTER_OR_EMOJI.search(tag) is not None


def find_tags(
    masked: str, links: Sequence[WrittenLink], properties: Mapping[str, Any]
) -> tuple[str, ...]:
    """
    The document's tags without ``#``, those of the frontmatter first, each once (ignoring case).

    Args:
        masked: The text without code and comments (`qmd.parse.links.mask_code`).
        links: The links of the text, in order; a ``#`` inside one is an anchor.
    """
    by_folded: dict[str, str] = {}
    for tag in frontmatter_tags(properties):
        by_folded.setdefault(tag.casefold(), tag)
    if "#" in masked:
        for tag in _tags_in_text(masked, links):
            by_folded.setdefault(tag.casefold(), tag)
    return tuple(by_folded.values())


def tags_in(text: str) -> Iterator[str]:
    """The tags of a text that has neither links nor code."""
    return _tags_in_text(text, ())


def frontmatter_tags(properties: Mapping[str, Any]) -> Iterator[str]:
    """The tags that the frontmatter names."""
    for key in ("tags", "tag"):
        for name in _names(properties.get(key), _LIST_BREAK):
            tag = name.lstrip("#").strip("/")
            if tag:
                yield tag


def _tags_in_text(masked: str, links: Sequence[WrittenLink]) -> Iterator[str]:
    begins = [link[0] for link in links]
    for match in _TAG.finditer(masked):
        tag = match[1].strip("/")
        if not is_tag(tag):
            continue
        index = bisect_right(begins, match.start()) - 1
        if index >= 0 and match.start() < links[index][1]:
            continue
        yield tag


def find_aliases(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Other names of the document, from ``aliases`` and ``alias``."""
    seen: dict[str, None] = {}
    for name in ("aliases", "alias"):
        for alias in _names(properties.get(name), _ALIAS_BREAK):
            seen.setdefault(alias)
    return tuple(seen)


def _names(value: object, breaks: re.Pattern[str]) -> Iterator[str]:
    """The names in a list, or in a string that is split at ``breaks``."""
    if isinstance(value, str):
        parts: Sequence[object] = breaks.split(value)
    elif isinstance(value, list):
        parts = value
    else:
        parts = (value,)
    for part in parts:
        if isinstance(part, str):
            name = " ".join(part.split())
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            name = str(part)
        else:
            continue
        if name:
            yield name


# --- tasks ------------------------------------------------------------------------------
# They are list items that begin with ``[ ]``, or with one of `_WORDS` as in Logseq. Dates and
# priorities are read as these programs write them: signs such as ``📅 2026-12-01`` and ``⏫`` of
# Obsidian Tasks, inline fields such as ``[due:: 2026-12-01]`` of Dataview, and Logseq's
# ``DEADLINE: <2026-12-01 Tue>`` and ``[#A]``.
#
# Sources: "Tasks Emoji Format" and "Dataview Format" of Obsidian Tasks; "Tasks" of Logseq.

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
#: The words of Logseq that begin a task, and its text follows.
WORD = rf"(?:{'|'.join(_WORDS)})(?=[ \t])"
#: A line that is a task: the sign in its box, or the word that begins it, and the text after it.
TASK = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>.)\]"
    rf"|[-*] (?P<word>{WORD}))(?:[ \t]+(?P<text>.*))?$"
)
#: What each task has in its line. (The patterns begin with plain characters, so that the search can
#: jump from one to the next.)
_TASK_SOMEWHERE = (
    re.compile(r"\[(?=.\](?:\s|$))"),
    re.compile(rf"- (?={WORD})"),
    re.compile(rf"\* (?={WORD})"),
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
    places = [match.start() for pattern in _TASK_SOMEWHERE for match in pattern.finditer(text)]
    lines = sorted({bisect_right(outline.starts, place) - 1 for place in places})
    return _lines_that_match(TASK, outline, lines)


def _lines_that_match(
    pattern: re.Pattern[str], outline: Outline, numbers: Sequence[int]
) -> Iterator[tuple[int, re.Match[str]]]:
    """Those of some lines outside properties and code that match, with their numbers from 0."""
    hidden = {number for start, end in outline.hidden for number in range(start, end)}
    first = outline.blocks[0].start if outline.blocks else len(outline.lines)
    for number in numbers:
        if number >= first and number not in hidden:
            match = pattern.match(outline.lines[number].rstrip("\r\n"))
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


# --- facts and relations ----------------------------------------------------------------
# Facts that a text states one by one, and list items that relate its note to others, are written as
# basic-memory writes them: ``- [decision] We use SQLite #db (source)`` and
# ``- part_of [[Project]]``. In the parentheses, between semicolons, a day is when the fact was
# noted, and ``until 2027-01-01`` the last day when it holds.
#
# Source: "Note Format Reference" of basic-memory.

#: Of one text; a longer list of facts is data.
MAX_OBSERVATIONS = 10_000
#: Characters of a fact that are kept, and of its line that are looked at.
MAX_TEXT = 2000
_MAX_CATEGORY = 60

_ITEM = r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+"
# One letter at least: ``[1]`` is a reference, ``[00:11]`` a time. Of one character: a task.
_IN_BRACKETS = rf"[^\[\]()^!\r\n][^\[\]()\r\n]{{1,{_MAX_CATEGORY - 1}}}"
_CATEGORY = rf"(?=[^\[\]\r\n]{{0,{_MAX_CATEGORY - 1}}}[^\W\d_]){_IN_BRACKETS}"
#: A line that is a fact: its category, and the text after it with its context.
OBSERVATION = re.compile(rf"{_ITEM}\[(?P<category>{_CATEGORY})\][ \t]+(?P<text>\S.*)$")
_CATEGORY_SOMEWHERE = re.compile(rf"\[(?={_IN_BRACKETS}\][ \t])")
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
    for match in _CATEGORY_SOMEWHERE.finditer(text):
        before = match.start() - 1
        while before > 0 and text[before] in " \t":
            before -= 1
        if before >= 0 and text[before] in "-*+.)":  # the end of an item's mark
            return True
    return False


def observation_lines(outline: Outline) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines outside code that are facts: their numbers, from 0, and matches of the pattern."""
    return _lines_that_match(OBSERVATION, outline, range(len(outline.lines)))


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
        if until and (day := _whole_day(until[1] or until[2])):
            expires = day
        elif noted is None and (day := _whole_day(part)):
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


def _whole_day(written: str) -> str | None:
    """As `_day`, where nothing follows the day."""
    return _day(written) if len(written) == 10 else None
