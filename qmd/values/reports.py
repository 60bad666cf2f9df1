"""What a job did, is doing or found: indexing, embedding, status, upkeep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from qmd.values.facts import Describe, Inline, Name, NotSent, Range
from qmd.values.stored import Collection


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that matches the collection's mask and still is no document, with the reason."""

    SENT: ClassVar = ("file", "reason", "detail")

    collection: str
    path: str
    reason: str  # "binary", "too large", "unreadable", "over budget", "bad file name", …
    detail: str

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What an index run did, in documents."""

    added: Annotated[int, Range(0)]
    updated: Annotated[int, Range(0)]
    moved: Annotated[int, Range(0)]
    removed: Annotated[int, Range(0)]
    unchanged: Annotated[int, Range(0)]
    skipped: Annotated[int, Range(0)]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """
    What one `index` run did. ``total_documents`` are those of the collections it went through;
    ``excluded`` counts what the rules left out, by reason.
    """

    collections: int
    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    total_documents: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # "collection/path: sentence", or of the run a sentence
    errors: tuple[str, ...] = ()  # a collection that could not be scanned, with the reason

    @property
    def changes(self) -> Changes:
        return Changes(
            added=self.added,
            updated=self.updated,
            moved=self.moved,
            removed=self.removed,
            unchanged=self.unchanged,
            skipped=len(self.skipped),
        )


@dataclass(frozen=True, slots=True)
class EmbedReport:
    embedded: int  # chunks embedded by the model
    reused: int  # chunks whose vector was in the cache
    remaining: int
    model: str


@dataclass(frozen=True, slots=True)
class Progress:
    """One tick of a long job; ``total`` is None while it is not known yet."""

    stage: Literal["scan", "index", "embed", "model", "bench"]
    done: int
    total: int | None
    item: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """`qmd why PATH`: is it a document, and if not, which rule says so."""

    path: str
    indexed: bool
    reason: str  # one sentence
    remedy: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """
    What the index of one database holds, and what it lacks.

    The vectors of ``model`` answer; those of ``next_model`` are being made, and
    ``next_embedded`` of the chunks have them. ``excluded`` counts what the rules left out, by
    reason.
    """

    database: str
    database_bytes: int
    total_documents: Annotated[int, Range(0)]
    needs_embedding: Annotated[int, Range(0), Describe("Distinct contents without vectors")]
    chunks: int
    chunks_embedded: int
    has_vector_index: bool
    model: str | None
    next_model: str | None
    next_embedded: int
    last_indexed: str | None
    collections: tuple[Collection, ...]
    skipped: tuple[SkippedFile, ...]
    excluded: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """A collection, and when it last changed."""

    collection: Annotated[
        Collection, Inline("name", "path", "pattern", "documents", "last_updated")
    ]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the index holds, and whether vectors are ready."""

    status: Annotated[Status, Inline("total_documents", "needs_embedding", "has_vector_index")]
    collections: tuple[CollectionStatus, ...]


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What `cleanup` removed, or with ``dry_run`` would remove."""

    dry_run: bool
    removed: Mapping[str, int]
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of `qmd doctor`."""

    name: str
    status: Literal["ok", "warning", "error"]
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Rescued:
    """
    What `rescue` has saved of a damaged database, counted.

    ``revisions``: earlier contents of files. ``lost``: rows that cannot be read, by table, as
    far as anything still tells of them. ``kept``: where the damaged database is now.
    """

    collections: int
    contexts: int
    revisions: int
    vectors: int
    lost: Mapping[str, int]
    kept: Annotated[Path | None, NotSent()] = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """
    A row of `qmd models list`.

    ``state``: whether its vectors answer ("active") or are to take their place ("coming").
    ``ready``: it can be used without a download.
    """

    name: str
    kind: Literal["embedding", "reranker"]
    dimension: int | None
    source: str  # "embedded", "hub", "folder", "server" or "unknown"
    size_bytes: int | None = None
    languages: str | None = None
    license: str | None = None
    ready: bool = False
    state: Literal["active", "coming"] | None = None


@dataclass(frozen=True, slots=True)
class ModelChange:
    """
    What `models.use` has begun.

    ``before`` answers until the ``waiting`` chunks have vectors; None where there were none.
    ``kept``: some process makes them in the background.
    """

    model: str
    dimension: int
    before: str | None
    waiting: int
    kept: Annotated[bool, Name("in_background")]
