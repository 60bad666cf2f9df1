"""What reading gives: documents, lines of them, outlines, pages of PDFs, and posts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple

from qmd.records import dataclass
from qmd.values.facts import Describe, Inline, Name, NotSent, OmitDefault, Range
from qmd.values.search import DocumentInfo, OfDocument

_Named = Annotated[DocumentInfo, Inline("docid", "file", "uri", "title", "collection", "path")]
#: The most headings, and the most blocks, of one outline.
MAX_OUTLINED = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """
    The lines of a document that a budget left out.

    ``is_begun``: ``first_line`` is shown in part.
    """

    first_line: Annotated[int, Range(1), Describe("Read on here")]
    last_line: Annotated[int, Range(1)]
    is_begun: Annotated[bool, OmitDefault(), Describe("The first line is shown in part")] = False


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """
    Lines ``from_line`` onwards of a document; ``more_lines`` were cut off after them.

    Attributes:
        text: The lines, as they stand in the document. The last has no line end if it is not that
            of the document.
        lines: How many they are; an empty text is no line, or one that is blank.
        left_out: Those of the lines asked for that a budget cut off.
        same_name: If a section or block was asked for, the lines of others with this name.
    """

    document: _Named
    context: str | None
    from_line: int
    more_lines: int
    text: Annotated[str, Name("body")]
    lines: Annotated[int, NotSent()]
    left_out: Annotated[LeftOut | None, OmitDefault()] = None
    same_name: Annotated[
        tuple[int, ...], OmitDefault(), Describe("Lines of other headings or blocks of this name")
    ] = ()

    @property
    def last_line(self) -> int:
        """The number of the last of the lines; that before the first if there are none."""
        return self.from_line + self.lines - 1


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that `multi_get` leaves out because it is over ``max_bytes``."""

    document: _Named


@dataclass(frozen=True, slots=True)
class MultiGetReply:
    """
    The documents that `multi_get` reads.

    Attributes:
        errors: Sentences, one for each name in the list that was not found.
        more: How many of the documents did not fit into the reply.
        next_file: The first of these.
    """

    SENT: ClassVar[tuple[str, ...]] = ("documents", "skipped", "errors", "more", "next_file")

    items: tuple[DocumentSlice | SkippedDocument, ...]
    errors: Annotated[tuple[str, ...], OmitDefault(), Describe("Names that were not found")] = ()
    more: Annotated[int, OmitDefault(), Describe("Documents for which there was no room")] = 0
    next_file: Annotated[str | None, OmitDefault(), Describe("The first of these")] = None

    @property
    def documents(self) -> tuple[DocumentSlice, ...]:
        return tuple(item for item in self.items if isinstance(item, DocumentSlice))

    @property
    def skipped(self) -> Annotated[tuple[SkippedDocument, ...], Describe("Over max_bytes")]:
        return tuple(item for item in self.items if isinstance(item, SkippedDocument))


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """
    What the index knows of a document besides its text.

    Attributes:
        date: Its own date, ISO 8601, from its frontmatter, text or photo; None without one.
        properties: As in the frontmatter, in its order; values as JSON has them.
        tags: Without ``#``, by name.
        warnings: Sentences that say what was wrong with the file when it was parsed.
        root: The absolute path of the directory of its collection.
        is_vault: Whether this directory is a vault of Obsidian.
    """

    document: DocumentInfo
    date: str | None
    properties: Mapping[str, object]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    warnings: tuple[str, ...]
    root: str
    is_vault: bool


class PlaceOnPage(NamedTuple):
    """A rectangle on a page, in points from its left and its top."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PdfPage:
    """
    A page of a PDF as it is shown.

    Attributes:
        number: From 1.
        pages: How many the file has.
        width, height: In points.
        marks: Where the words stand that were asked for, first the place to look at.
    """

    number: int
    pages: int
    width: float
    height: float
    marks: tuple[PlaceOnPage, ...]


@dataclass(frozen=True, slots=True)
class OutlinedHeading:
    """A heading, and the lines of its section, with the headings below it."""

    level: Annotated[int, Range(1, 6)]
    text: str
    line: Annotated[int, Range(1), Describe("Counted from 1")]
    last_line: Annotated[int, Range(1), Describe("The last line of its section")]


@dataclass(frozen=True, slots=True)
class OutlinedBlock:
    """A block with a name (``^name`` at its end)."""

    block: Annotated[str, Describe("Its name, without ^")]
    line: Annotated[int, Range(1), Describe("Counted from 1")]


@dataclass(frozen=True, slots=True)
class DocumentOutline(OfDocument):
    """
    The headings and named blocks of a document, in the order of their lines.

    Attributes:
        total: The number of headings; more than are listed where there are very many.
    """

    document: Annotated[DocumentInfo, Inline("docid", "file", "title")]
    lines: Annotated[int, Range(0), Describe("How many lines the document has")]
    headings: tuple[OutlinedHeading, ...]
    blocks: tuple[OutlinedBlock, ...]
    total: Annotated[int, Range(0), Describe("How many headings there are in all")]
    left_out: Annotated[
        int, Range(0), OmitDefault(), Describe("More headings and blocks than max_tokens allows")
    ] = 0


@dataclass(frozen=True, slots=True)
class Post:
    """``date`` (YYYY-MM-DD) and ``title`` are what the file's name says; None: no date."""

    path: str
    date: str | None
    title: str


@dataclass(frozen=True, slots=True)
class PostGroup:
    """A folder of an author and its posts by file name; "motions" is what was posted by itself."""

    name: str
    posts: tuple[Post, ...]


@dataclass(frozen=True, slots=True)
class AuthorPosts:
    """
    The posts of an author, in groups: motions first, then the albums by name.

    ``unread``: the folders that could not be read.
    """

    author: str
    groups: tuple[PostGroup, ...]
    unread: Annotated[tuple[str, ...], NotSent()] = ()

    @property
    def posts(self) -> tuple[Post, ...]:
        return tuple(post for group in self.groups for post in group.posts)


@dataclass(frozen=True, slots=True)
class PostText:
    """A post and all of its text."""

    post: Annotated[Post, Inline()]
    text: str


@dataclass(frozen=True, slots=True)
class PostLine:
    """A line of a post, without its end."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class PostHit:
    """
    A line that holds the query.

    Attributes:
        line: The number of the line, from 1.
        first: The number of the first of ``lines``.
        lines: The line and its neighbours, without line ends.
        spans: Where the query occurs in the line: half-open ranges of characters.
    """

    SENT: ClassVar[tuple[str, ...]] = ("path", "line", "text", "spans", "context")

    path: str
    line: int
    first: int
    lines: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        return self.lines[self.line - self.first]

    @property
    def context(self) -> tuple[PostLine, ...]:
        return tuple(PostLine(number, text) for number, text in enumerate(self.lines, self.first))


@dataclass(frozen=True, slots=True)
class PostHits:
    """The first hits of ``total``; ``unread`` are files and folders that could not be read."""

    SENT: ClassVar[tuple[str, ...]] = ("query", "total", "hits")

    query: str
    hits: tuple[PostHit, ...]
    total: int
    unread: tuple[str, ...]
