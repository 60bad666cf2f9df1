"""
The values that flow through qmd: frozen, without behaviour beyond naming themselves.

Lines are 1-based as an editor counts them (``\\n``, ``\\r\\n`` and ``\\r`` end a line);
character offsets are 0-based into the decoded text, byte offsets into its UTF-8 form.
Spans are half-open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

LinkKind = Literal["link", "image", "wikilink", "embed"]
Match = Literal["exact", "relaxed", "semantic"]
Source = Literal["fts", "vec"]


# --- parse ---------------------------------------------------------------------------


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
    properties: Mapping[str, Any]
    links: tuple[Link, ...]
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...]


# --- inference -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """
    An embedding model, as far as the index must know it.

    ``fingerprint`` changes when vectors would (weights, pooling, prefixes): vectors of
    different fingerprints never mix. Cosines at or below ``cosine_low`` score 0, at or
    above ``cosine_high`` 1, linear between (measured per model; see docs/models.md).
    """

    name: str
    fingerprint: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    cosine_low: float = 0.0
    cosine_high: float = 1.0


# --- store ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collection:
    """A directory, and which of its files are documents (``pattern``: globs, comma-separated)."""

    id: int
    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    documents: int
    last_updated: str | None  # ISO 8601 UTC, when a document last changed
    last_indexed: str | None  # ISO 8601 UTC, when the directory was last scanned to the end


@dataclass(frozen=True, slots=True)
class Context:
    """A description of everything below a path prefix; collection None means all collections."""

    collection: str | None
    prefix: str  # below the collection, "" for all of it
    path: str  # as listed: a directory on the disk, or "/"
    text: str

    @property
    def uri(self) -> str:
        if self.collection is None:
            return "/"
        return encode_uri("/".join(filter(None, (self.collection, self.prefix))))


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document without its text: a row of `qmd ls`."""

    id: int
    collection: str
    path: str
    title: str
    docid: str  # "#" and six or more hex digits
    bytes: int
    modified: str  # ISO 8601 UTC

    @property
    def file(self) -> str:
        """The display path, ``collection/path``: what every face prints and accepts."""
        return f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """Lines ``from_line`` onwards of a document; ``more_lines`` were cut off behind them."""

    document: DocumentInfo
    context: str | None
    text: str
    from_line: int
    more_lines: int


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that `multi_get` leaves out because it is over ``max_bytes``."""

    document: DocumentInfo


@dataclass(frozen=True, slots=True)
class MultiGetReply:
    """``errors`` are sentences, one for each name in the list that was not found."""

    errors: tuple[str, ...]
    items: tuple[DocumentSlice | SkippedDocument, ...]


# --- ingest --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that matches the collection's mask and still is no document, with the reason."""

    collection: str
    path: str
    reason: str  # "binary", "too large", "unreadable", "bad file name", …
    detail: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one `index` run did. ``excluded`` counts what the rules left out, by reason."""

    collections: int
    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    total_documents: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # "collection/path: sentence"
    errors: tuple[str, ...] = ()  # a collection that could not be scanned, with the reason


@dataclass(frozen=True, slots=True)
class EmbedReport:
    embedded: int  # chunks embedded by the model
    reused: int  # chunks whose vector was in the cache
    remaining: int
    model: str


@dataclass(frozen=True, slots=True)
class Progress:
    """One tick of a long job; ``total`` is None while it is not known yet."""

    stage: Literal["scan", "index", "embed", "model"]
    done: int
    total: int | None
    item: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`qmd why PATH`: is it a document, and if not, which rule says so."""

    path: str
    indexed: bool
    reason: str  # one sentence
    detail: Mapping[str, Any] = field(default_factory=dict)
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    database: str
    database_bytes: int
    total_documents: int
    needs_embedding: int  # distinct contents without vectors
    chunks: int
    chunks_embedded: int
    has_vector_index: bool
    model: str | None
    collections: tuple[Collection, ...]
    skipped: tuple[SkippedFile, ...]
    excluded: Mapping[str, int]
    last_indexed: str | None


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What `cleanup` removed, or with dry_run would remove."""

    removed: Mapping[str, int]
    bytes_before: int
    bytes_after: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of `qmd doctor`."""

    name: str
    status: Literal["ok", "warning", "error"]
    message: str
    remedy: str | None = None


# --- search --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy, before the limit. Dates are ISO 8601: after ≤ date < before."""

    collections: tuple[str, ...] = ()
    path: str | None = None
    tags: tuple[str, ...] = ()
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """
    One document that answers a query.

    ``score`` is 0..1 and orders the hits. ``relevance`` is 0..1: how much of the query the
    document answers, whatever its rank. ``snippet`` is lines ``N: text``; ``line`` its best line.
    """

    docid: str
    collection: str
    path: str
    title: str
    score: float
    context: str | None
    snippet: str
    line: int
    relevance: float
    match: Match
    explain: Mapping[str, Any] | None = None

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class SearchReply:
    """``degraded`` says in one sentence what a missing model or index took away, else None."""

    query: str
    hits: tuple[Hit, ...]
    degraded: str | None = None
    needs_embedding: int = 0


def encode_uri(file: str) -> str:
    """``qmd://`` and each path segment percent-encoded as encodeURIComponent does, slashes kept."""
    return "qmd://" + "/".join(quote(part, safe="!'()*~-_.") for part in file.split("/"))
