"""What a file says, before it meets the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

LinkKind = Literal["link", "image", "wikilink", "embed"]


@dataclass(frozen=True, slots=True)
class Heading:
    """An ATX or setext heading outside code."""

    level: int
    text: str
    line: int
    start_char: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link as written; ``target`` keeps its spelling, without ``#heading`` and ``^block``."""

    kind: LinkKind
    target: str
    text: str | None
    heading: str | None
    block: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """
    A piece of a document: ``text[start_char:end_char]``, byte for byte the source.

    Chunks are in order, do not overlap, and together hold every non-blank line of the
    text behind the frontmatter. ``heading_path`` is outermost first.
    """

    seq: int
    start_char: int
    end_char: int
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    heading_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """
    What one file says, before it meets the database.

    ``text`` is the whole decoded text, frontmatter included; ``body_start`` is the
    character where the text behind the frontmatter begins (0 without frontmatter).
    ``properties`` is the frontmatter as JSON-safe values. ``date`` is ISO 8601
    (``2025-03-01`` or ``2025-03-01T10:00:00+08:00``) or None. ``warnings`` are sentences
    for people, shown by `qmd why`.
    """

    text: str
    encoding: str
    title: str
    title_source: Literal["frontmatter", "heading", "filename"]
    body_start: int
    headings: tuple[Heading, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    date: str | None
    properties: Mapping[str, object]
    links: tuple[Link, ...]
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...]


class FileState(NamedTuple):
    """A file as the last scan saw it: equal numbers mean that it need not be read again."""

    bytes: int
    mtime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class FullTextEntry:
    """
    What full text holds of a document, segmented; None where that is the document's own text.

    ``front`` is its frontmatter, ``words`` the parts of its CamelCase names.
    """

    title: str | None
    headings: str
    body: str | None
    path: str | None
    front: str | None
    words: str


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What the indexer hands over for one file; ``chunk_hashes`` parallel to ``parsed.chunks``."""

    path: str
    state: FileState
    hash: str
    parser_version: int
    parsed: ParsedDocument
    fulltext: FullTextEntry
    chunk_hashes: Sequence[bytes]
