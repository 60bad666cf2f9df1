"""Facts that notes state one by one, and what stands around a note."""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from qmd.records import dataclass
from qmd.values.facts import Describe, OmitDefault, Range
from qmd.values.search import DocumentInfo


class Observation(NamedTuple):
    """
    A fact of a document: ``- [category] fact #tag (context)``.

    Attributes:
        line: From 1.
        category: In lower case.
        text: The fact on one line, with its tags, without its context.
        tags: Its own and those of the frontmatter, without ``#``, in lower case.
        context: What stands in the parentheses, without the days; "" for nothing.
        noted: The day when it was noted, in ISO 8601; None if it does not say.
        expires: The last day when it holds, in ISO 8601; None for no end.
    """

    line: int
    category: str
    text: str
    tags: tuple[str, ...] = ()
    context: str = ""
    noted: str | None = None
    expires: str | None = None


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """
    A fact with its note.

    Attributes:
        day: When it was noted, else the day of its note; ISO 8601.
        newer: The place of the newest other fact of the same subject and category, if that one is
            newer: the two may contradict each other.
    """

    SENT: ClassVar[tuple[str, ...]] = (
        *("file", "line", "subject", "category", "text", "day", "until", "expired", "newer"),
        *("context", "tags", "docid"),
    )

    document: DocumentInfo
    line: Annotated[int, Range(1)]
    category: str
    text: str
    day: Annotated[str, Describe("When it was noted")]
    until: Annotated[str | None, Describe("The last day when it holds"), OmitDefault()] = None
    expired: Annotated[bool, Describe("It holds no more"), OmitDefault()] = False
    newer: Annotated[
        str | None,
        Describe("file:line of a newer fact of this subject and category, which may contradict it"),
        OmitDefault(),
    ] = None
    context: Annotated[str, Describe("Such as its source"), OmitDefault()] = ""
    tags: Annotated[tuple[str, ...], Describe("Without #"), OmitDefault()] = ()

    @property
    def file(self) -> Annotated[str, Describe("collection/path; get takes it")]:
        return self.document.file

    @property
    def subject(self) -> Annotated[str, Describe("The title of its note")]:
        return self.document.title

    @property
    def docid(self) -> str:
        return self.document.docid


@dataclass(frozen=True, slots=True)
class RecalledFacts:
    """Facts, the best first; those of a subject and category together, the newest first."""

    facts: tuple[RecalledFact, ...]
    total: Annotated[int, Range(0), Describe("How many there are in all")]


@dataclass(frozen=True, slots=True)
class NewFact:
    """
    A fact to remember.

    Attributes:
        text: The fact, with its tags. It becomes one line.
        about: The note that states it: a name as `get` takes it, or the title of a new one.
        source: Who says so, or where it stands; "" for nothing.
        until: The last day when it holds, in ISO 8601; None for no end.
    """

    text: str
    about: str
    category: str = "fact"
    tags: tuple[str, ...] = ()
    source: str = ""
    until: str | None = None


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """
    A fact that a note states, as it was written.

    Attributes:
        written: False if the note stated just this already.
        expired: Its last day has passed, so it is recalled only when asked for.
        others: The other facts of the same subject and category that hold now, the newest first.
        change: The number of the change, for undo; None if nothing was written.
        problem: A sentence that says why searches do not have it yet; None if they do.
    """

    file: Annotated[str, Describe("collection/path")]
    line: Annotated[int, Range(1)]
    fact: Annotated[str, Describe("The line as it stands there")]
    written: Annotated[bool, Describe("False if the note stated just this already")]
    expired: Annotated[bool, Describe("It holds no more: recall leaves it out"), OmitDefault()] = (
        False
    )
    others: Annotated[
        tuple[RecalledFact, ...],
        Describe("Other facts of this subject and category: which of them still hold?"),
        OmitDefault(),
    ] = ()
    change: Annotated[int | None, Describe("Its number, for undo"), OmitDefault()] = None
    problem: Annotated[str | None, Describe("Why searches lack it so far"), OmitDefault()] = None


@dataclass(frozen=True, slots=True)
class ContextNote:
    """
    A note near another one.

    Attributes:
        relations: How they are linked: ``part_of →`` for what the other note is to this one,
            ``← part_of`` for the opposite; only arrows for plain links.
        steps: How many links are between them.
        text: Its beginning; "" if there was no room.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    title: str
    relations: Annotated[
        tuple[str, ...], Describe("part_of → leads there, ← part_of comes from there")
    ]
    steps: Annotated[int, Range(1), Describe("How many links away")]
    text: Annotated[str, Describe("Its beginning"), OmitDefault()] = ""


@dataclass(frozen=True, slots=True)
class NoteContext:
    """
    A note and the notes near it, within a budget of tokens.

    Attributes:
        text: That of the note, without its frontmatter and without facts that hold no more.
        next_line: The first line of the note that has no room; None if it is complete.
        notes: Those with a relation first, then those with most links.
        left_out: How many more there are.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    title: str
    docid: str
    text: str
    notes: tuple[ContextNote, ...]
    next_line: Annotated[
        int | None, Describe("The first line that has no room; get goes on there"), OmitDefault()
    ] = None
    left_out: Annotated[int, Range(0), Describe("More notes near it"), OmitDefault()] = 0
