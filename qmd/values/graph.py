"""What is asked of all documents together: tags, links, changes, similar ones, tables of notes."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, ClassVar, Literal

from qmd.records import dataclass
from qmd.values.documents import LinkKind
from qmd.values.facts import Describe, Inline, OmitDefault, Range
from qmd.values.search import DocumentInfo, OfDocument
from qmd.values.text import one_line

#: The greatest limit of a listing of the graph.
MAX_LISTED = 1000

_TOTAL = Describe("How many there are in all")


# --- tags ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TagCount:
    """
    A tag with its documents.

    Attributes:
        documents: How many documents have exactly this tag.
        total: How many have it or a tag below it; each document counts once.
        depth: Its place in the listed tree, from 0.
    """

    tag: Annotated[str, Describe("Without #")]
    documents: Annotated[int, Range(0), Describe("Documents with exactly this tag")]
    total: Annotated[int, Range(0), Describe("Documents with this tag or one below it")]
    depth: Annotated[int, Range(0), Describe("Its level in this tree, from 0")]

    @property
    def name(self) -> str:
        """The part after the last slash."""
        return self.tag.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class TagTree:
    """
    Tags as a tree: each is followed by those below it, the ones with most documents first.

    Attributes:
        nearest: The tags that the prefix may mean, if there is none below it; at most three.
    """

    tags: tuple[TagCount, ...]
    total: Annotated[int, Range(0), _TOTAL]
    nearest: Annotated[tuple[str, ...], Describe("If no tag has the prefix"), OmitDefault()] = ()


# --- what changed --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecentChange(OfDocument):
    """
    A document whose file changed.

    Attributes:
        modified: The time of change of the file, ISO 8601 UTC.
        by: The tool of qmd that wrote the file as it is now; "disk" for any other program.
        session: The session in which the tool was called; "" for other programs.
    """

    SENT: ClassVar[tuple[str, ...]] = ("file", "title", "docid", "modified", "by", "session")

    document: DocumentInfo
    by: Annotated[str, Describe('The tool that wrote it, or "disk" for other programs')]
    session: Annotated[str, OmitDefault(), Describe("The session that called the tool")] = ""

    @property
    def modified(self) -> Annotated[str, Describe("ISO 8601 UTC")]:
        return self.document.modified


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """The documents whose files changed last, the latest first."""

    changes: tuple[RecentChange, ...]
    total: Annotated[int, Range(0), _TOTAL]


# --- what is similar -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimilarDocument(OfDocument):
    """
    A document that is about the same things as another.

    Attributes:
        similarity: 0 to 1; 1 for the same text.
        line: Where the chunk begins that is most like a chunk of the other document.
        linked: Whether one of both links to the other.
    """

    SENT: ClassVar[tuple[str, ...]] = ("file", "title", "docid", "similarity", "line", "linked")

    document: DocumentInfo
    similarity: Annotated[float, Range(0, 1), Describe("1 for the same text")]
    line: Annotated[int, Range(1), Describe("Where the most similar part begins")]
    linked: Annotated[bool, Describe("Whether one of both links to the other")]


@dataclass(frozen=True, slots=True)
class SimilarDocuments:
    """The documents most similar to one, the most similar first."""

    file: Annotated[str, Describe("The document they are compared with")]
    documents: tuple[SimilarDocument, ...]
    left_out: Annotated[
        int, Range(0), OmitDefault(), Describe("More documents than max_tokens allows")
    ] = 0


# --- links ---------------------------------------------------------------------------

#: What a link leads to. A "section missing" leads to a document without that heading or block.
LinkState = Literal["document", "attachment", "folder", "web", "section missing", "nothing"]
#: What a broken link names that does not exist.
MissingPart = Literal["note", "attachment", "section"]


@dataclass(frozen=True, slots=True)
class NoteLink:
    """
    A link as it is written in a note, and where it leads. An embed is a link, too.

    Attributes:
        target: As written, with ``#heading`` or ``#^block``, without the text that is shown.
        file: ``collection/path`` of the document or attachment; None if there is none.
    """

    line: Annotated[int, Range(1)]
    kind: LinkKind
    target: Annotated[str, Describe("As written")]
    state: Annotated[LinkState, Describe("What it leads to")]
    file: Annotated[str | None, OmitDefault(), Describe("collection/path that it leads to")] = None
    relation: Annotated[str | None, OmitDefault(), Describe("As in - part_of [[Note]]")] = None


@dataclass(frozen=True, slots=True)
class NoteLinks:
    """The links in one note, in the order of its text."""

    file: Annotated[str, Describe("The note with the links")]
    links: tuple[NoteLink, ...]
    total: Annotated[int, Range(0), _TOTAL]


@dataclass(frozen=True, slots=True)
class Backlink:
    """
    A link in another note that leads to this one.

    Attributes:
        file: The other note.
        text: Its line with the link; a long line is cut around the link.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    line: Annotated[int, Range(1)]
    text: Annotated[str, Describe("The line with the link")]
    kind: LinkKind
    target: Annotated[str, Describe("As written")]
    relation: Annotated[str | None, OmitDefault(), Describe("As in - part_of [[Note]]")] = None


@dataclass(frozen=True, slots=True)
class Backlinks:
    """The links in other notes that lead to one note, by file and line."""

    file: Annotated[str, Describe("The note that they lead to")]
    links: tuple[Backlink, ...]
    total: Annotated[int, Range(0), _TOTAL]


@dataclass(frozen=True, slots=True)
class NeighbourNote:
    """
    A document of a neighbourhood.

    Attributes:
        steps: How many links lead from the note in the middle to it, in either direction.
    """

    file: str
    title: str
    steps: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """
    The documents that a few links lead to, and the links among them.

    Attributes:
        notes: The one in the middle first, then by steps, and those with most links first.
        links: From which to which of ``notes``, by their places in it; each pair once.
        left_out: How many more were found.
    """

    notes: tuple[NeighbourNote, ...]
    links: tuple[tuple[int, int], ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """
    A link that leads nowhere.

    Attributes:
        missing: Which part of its target does not exist.
        nearest: The existing name that is most like it: a file, an alias or a title; None if no
            name is like it.
    """

    file: Annotated[str, Describe("The note with the link")]
    line: Annotated[int, Range(1)]
    kind: LinkKind
    target: Annotated[str, Describe("As written")]
    missing: Annotated[MissingPart, Describe("What does not exist")]
    nearest: Annotated[
        str | None, OmitDefault(), Describe("The existing file with the most similar name")
    ] = None


@dataclass(frozen=True, slots=True)
class BrokenLinks:
    """Links that lead nowhere, by file and line."""

    links: tuple[BrokenLink, ...]
    total: Annotated[int, Range(0), _TOTAL]


@dataclass(frozen=True, slots=True)
class Orphan(OfDocument):
    """A document to which no other document links."""

    document: Annotated[DocumentInfo, Inline("file", "title", "docid", "modified")]


@dataclass(frozen=True, slots=True)
class Orphans:
    """The documents to which no other document links, by collection and path."""

    documents: tuple[Orphan, ...]
    total: Annotated[int, Range(0), _TOTAL]


@dataclass(frozen=True, slots=True)
class ViewRow:
    """
    A note of a view.

    Attributes:
        cells: One Markdown text for each column; "" for a value that the note lacks.
        group: What its group has in common, as Markdown; "" without groups.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    cells: Annotated[tuple[str, ...], Describe("Markdown, one for each column")]
    group: Annotated[str, OmitDefault()] = ""


@dataclass(frozen=True, slots=True)
class View:
    """
    A table of notes.

    Attributes:
        line: Of the note that has its block; None if it comes from elsewhere.
        total: How many notes it has without a limit.
        problem: Why there is no table; "" if there is one.
    """

    name: str
    columns: tuple[str, ...] = ()
    rows: tuple[ViewRow, ...] = ()
    total: Annotated[int, Range(0), Describe("Notes without a limit")] = 0
    line: Annotated[int | None, Describe("Of its block in the note"), OmitDefault()] = None
    problem: Annotated[str, Describe("Why there is no table"), OmitDefault()] = ""

    @property
    def markdown(self) -> str:
        """The table, or one for each group, or the problem."""
        if self.problem:
            return f"> [!warning] {self.problem}\n"
        head = [_line(self.columns), _line(["---"] * len(self.columns))]
        parts = [] if self.rows else [*head]
        for group, rows in groupby(self.rows, lambda row: row.group):
            parts += [f"\n**{group}**\n"] if group else [""] if parts else []
            parts += [*head, *(_line(row.cells) for row in rows)]
        if self.total > len(self.rows):
            parts.append(f"\n… {self.total - len(self.rows):,} more")
        return "\n".join(parts).lstrip("\n") + "\n"


@dataclass(frozen=True, slots=True)
class ViewList:
    """The views of a note, in the order of its text."""

    views: tuple[View, ...]


def _line(cells: tuple[str, ...] | list[str]) -> str:
    escaped = (one_line(cell).replace("\\|", "|").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
