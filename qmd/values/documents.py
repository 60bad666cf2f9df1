"""Documents before they are stored: the result of parsing a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from qmd.records import dataclass

if TYPE_CHECKING:
    from qmd.values.memory import Observation
    from qmd.values.pictures import Picture
    from qmd.values.tasks import Task

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

    The chunks of a document are in order and do not overlap. Together they hold every line behind
    the frontmatter that is not blank.

    Attributes:
        seq: The chunk's number in its document, from 0.
        start_byte, end_byte: Offsets into the text in UTF-8.
        start_line, end_line: Lines from 1; ``end_line`` is the line behind the chunk.
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
        kind: ``page``, ``slide``, ``sheet``, ``chapter``, ``cell``, ``message`` or ``line``.
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
        """What names it behind the file and ``#``, in viewers too: ``page=12``."""
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
        body_start: The character at which the text behind the frontmatter begins; 0 without one.
        date: ISO 8601, such as ``2025-03-01`` or ``2025-03-01T10:00:00+08:00``; None without one.
        properties: The frontmatter, as values that JSON can hold.
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
