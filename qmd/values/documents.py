"""Documents before they are stored: what was parsed of a file, with its tasks and facts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from qmd.records import NamedTuple, dataclass
from qmd.values.facts import Describe, OmitDefault, Range
from qmd.values.search import DocumentInfo, OfDocument

if TYPE_CHECKING:
    from qmd.values.pictures import Picture


LinkKind = Literal["link", "image", "wikilink", "embed"]


class Heading(NamedTuple):
    """An ATX or setext heading outside code."""

    level: int
    text: str
    line: int
    start_char: int


class Link(NamedTuple):
    """
    A link. ``target`` is spelled as in the text, without ``#heading`` and ``^block``.

    ``relation``: what the note is to the target, as the list item says whose only link this is.
    """

    kind: LinkKind
    target: str
    text: str | None
    heading: str | None
    block: str | None
    line: int
    relation: str | None = None


class Chunk(NamedTuple):
    """
    A piece of a document: ``text[start_char:end_char]``, unchanged.

    The chunks of a document are in order and do not overlap. Together they hold every line after
    the frontmatter that is not blank.

    Attributes:
        seq: The chunk's number in its document, from 0.
        start_byte, end_byte: Offsets into the text in UTF-8.
        start_line, end_line: Lines from 1; ``end_line`` is the line after the chunk.
        heading_path: The headings above the chunk, the outermost first.
    """

    seq: int
    start_char: int
    end_char: int
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    heading_path: tuple[str, ...]


def named_place(kind: str, label: str) -> str:
    """What people call a place of a file, in a few words: ``p. 12``, ``slide 3``."""
    return f"{'p.' if kind == 'page' else kind} {label}"


class DocumentAnchor(NamedTuple):
    """
    A place of a document's file, such as a page, at which a part of its text begins.

    The part ends where the next anchor begins.

    Attributes:
        kind: Such as ``page``, ``slide``, ``sheet``, ``chapter``, ``message`` or ``time``.
        label: Its number or name among those of its kind, as people count: ``12``, ``B2:F40``.
        shown: What the file itself calls it, if that differs, such as the page number ``xii``.
        line: The first line of the part, from 1.
    """

    kind: str
    label: str
    shown: str | None
    line: int

    @property
    def fragment(self) -> str:
        """What names it after the file and ``#``, in viewers too: ``page=12``."""
        return f"{self.kind}={self.label}"

    @property
    def place(self) -> str:
        """What people call it: ``p. 12``, with what the file calls it: ``p. 12 (ii)``."""
        name = named_place(self.kind, self.label)
        return name if self.shown is None else f"{name} ({' '.join(self.shown.split())})"


def place_of_line(places: Sequence[DocumentAnchor], line: int) -> DocumentAnchor | None:
    """The last of some places, which are in order, that begins at a line or before it."""
    at = bisect_right(places, line, key=lambda place: place.line)
    return places[at - 1] if at else None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """
    The result of parsing one file.

    Attributes:
        text: The whole decoded text, with the frontmatter.
        encoding: A Python codec name.
        description: What the frontmatter or the photo says that the document is about, on one
            line; empty without one.
        body_start: The character at which the text after the frontmatter begins; 0 without one.
        date: ISO 8601, such as ``2025-03-01`` or ``2025-03-01T10:00:00+08:00``; None without one.
        properties: The frontmatter, as values that JSON can hold.
        numbers: What is written of some of their numbers: key, value and text.
        warnings: Sentences for people, shown by `qmd why`.
        anchors: By their places, ascending; none for a format that has lines alone.
        pictures: The pages of the file, from 1, that are pictures; a photo has one.
        tasks, observations: By their lines, ascending; none for a format that is no note.
    """

    text: str
    encoding: str
    title: str
    title_source: Literal["frontmatter", "heading", "filename"]
    description: str
    body_start: int
    headings: tuple[Heading, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    date: str | None
    properties: Mapping[str, object]
    links: tuple[Link, ...]
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...]
    anchors: tuple[DocumentAnchor, ...] = ()
    pictures: tuple[int, ...] = ()
    tasks: tuple[Task, ...] = ()
    observations: tuple[Observation, ...] = ()
    numbers: tuple[tuple[str, float, str], ...] = ()


class FileState(NamedTuple):
    """The state of a file at a scan. If it is equal at the next scan, the file is not read."""

    bytes: int
    mtime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class FullTextEntry:
    """
    The segmented texts of a document for full text; None if segmenting changed nothing.

    Attributes:
        title: The title, and the file's name and the aliases where they have other words.
        front: The frontmatter.
        words: The parts of CamelCase names.
        replacements: What makes the body and the frontmatter of the document's own, so that they
            need not be stored: strings, each before the one in its place. Empty if nothing does.
        has_pairs: Whether what is left to do then is to write runs of Chinese, Japanese or Korean
            characters as pairs, so that they need not be stored.
    """

    title: str | None
    headings: str
    body: str | None
    path: str | None
    front: str | None
    words: str
    description: str | None
    replacements: Sequence[str] = ()
    has_pairs: bool = False


@dataclass(frozen=True, slots=True)
class NewDocument:
    """
    A parsed file, ready to be stored.

    Attributes:
        path: Relative to the collection, with ``/``.
        hash: The hash of the text, in hexadecimal.
        chunk_hashes: The hash of each chunk's embedded text, in the order of ``parsed.chunks``.
        pictures: The pages that are pictures, and whether their texts are part of ``parsed``.
    """

    path: str
    state: FileState
    hash: str
    parser_version: int
    parsed: ParsedDocument
    fulltext: FullTextEntry
    chunk_hashes: Sequence[bytes]
    pictures: Sequence[Picture] = ()


TaskStatus = Literal["open", "doing", "done", "cancelled"]
#: The words for a priority, the highest first.
PRIORITIES = ("highest", "high", "medium", "low", "lowest")


class Task(NamedTuple):
    """
    A task of a document.

    Attributes:
        line: From 1.
        text: What is to be done, on one line, without the dates and the priority.
        tags: Its own and those of the frontmatter, without ``#``, in lower case.
        priority: 1 is the highest, 5 the lowest; None without one.
        due, scheduled, start, finished: Days, in ISO 8601; None if the task does not say.
    """

    line: int
    status: TaskStatus
    text: str
    tags: tuple[str, ...] = ()
    priority: int | None = None
    due: str | None = None
    scheduled: str | None = None
    start: str | None = None
    finished: str | None = None


@dataclass(frozen=True, slots=True)
class ListedTask(OfDocument):
    """A task with its note."""

    SENT: ClassVar[tuple[str, ...]] = (
        *("file", "line", "text", "status", "due", "priority", "scheduled", "start", "finished"),
        *("tags", "title", "docid"),
    )

    document: DocumentInfo
    line: Annotated[int, Range(1)]
    text: str
    status: Annotated[TaskStatus, Describe("open, doing, done or cancelled")]
    due: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    priority: Annotated[str | None, Describe("highest to lowest"), OmitDefault()] = None
    scheduled: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    start: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    finished: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    tags: Annotated[tuple[str, ...], Describe("Without #"), OmitDefault()] = ()


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks of all notes: by the day when they are due, then by priority and file."""

    tasks: tuple[ListedTask, ...]
    total: Annotated[int, Range(0), Describe("How many there are in all")]


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
class RecalledFact(OfDocument):
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
    def subject(self) -> Annotated[str, Describe("The title of its note")]:
        return self.document.title


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
