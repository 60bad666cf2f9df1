"""Collections, models, and the reports of jobs: indexing, embedding, status, upkeep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from qmd.engine_text import engine_text
from qmd.records import dataclass, field
from qmd.values.facts import Describe, Inline, Name, NotSent, OmitDefault, Range


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that matches the collection's mask and still is no document, with the reason."""

    SENT: ClassVar[tuple[str, ...]] = ("file", "reason", "detail")

    collection: str
    path: str
    reason: str  # "binary", "too large", "unreadable", "over budget", "bad file name", …
    detail: str

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """
    What an installed package offers of one kind.

    Attributes:
        kind: "formats", "models" or "operations"; "" for a name that nothing installed has.
        state: "broken" is one that is turned on and gives nothing; ``problem`` says why.
        offers: Formats with their suffixes, models as settings name them, operations, if it is on.
    """

    name: Annotated[str, Describe("What the setting plugins names")]
    kind: str
    package: str
    version: str
    state: Literal["on", "off", "broken"]
    offers: tuple[str, ...] = ()
    problem: Annotated[str, OmitDefault(), Describe("Why it gives nothing")] = ""


@dataclass(frozen=True, slots=True)
class PluginList:
    plugins: tuple[PluginInfo, ...]


@dataclass(frozen=True, slots=True)
class SkipCount:
    """How many files of a collection were skipped for one reason."""

    collection: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class WarnedDocument:
    """A document that was read with warnings, which are sentences."""

    file: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CollectionPreview:
    """
    What a new collection would hold.

    Attributes:
        name: The name that it would have.
        path: Its directory, absolute, with all links followed.
        files: How many files would be documents.
        bytes: Their length in all.
        examples: The paths of the first of them, relative to the directory.
        excluded: Reason → how many files and folders the rules leave out.
        skipped: How many files match and still could be no documents.
        is_complete: False if the time was up before the whole directory was seen.
    """

    name: str
    path: str
    files: int
    bytes: int
    examples: tuple[str, ...]
    excluded: Mapping[str, int]
    skipped: int
    is_complete: bool


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
    The result of an `index` run.

    Attributes:
        collections: How many collections were indexed.
        total_documents: How many documents these collections have now.
        excluded: Reason → how many files and folders the rules left out.
        warnings: Sentences; one about a document begins with ``collection/path: ``, one about many
            documents with their number and the first of them.
        errors: Sentences, one for each collection that could not be scanned.
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
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

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
    token_states: int = 0  # chunks that had a vector, and have token states now
    english: int = 0  # chunks that got a vector by the model of English, too
    english_model: str | None = None


@dataclass(frozen=True, slots=True)
class OcrReport:
    """What `ocr` did, in pages; a photo is one."""

    read: int
    empty: int  # there is no text on them
    failed: int  # `qmd why FILE` says why
    remaining: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job is; ``total`` is None while it is not known."""

    stage: Literal[
        "scan",
        "index",
        "words",
        "embed",
        "ocr",
        "model",
        "bench",
        "push",
        "import",
        "backup",
        "check",
        "cleanup",
        "migrate",
    ]
    done: int
    total: int | None
    item: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a file is a document, or which rule leaves it out (`qmd why PATH`)."""

    path: str
    indexed: bool
    reason: str  # one sentence
    remedy: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """
    The content of a database.

    Attributes:
        database: The path of the file.
        needs_embedding: How many distinct texts have a chunk without a vector.
        chunks_outdated: How many chunks have the vector of an earlier title or of earlier headings,
            which answers until the new one is made.
        model: The model whose vectors answer searches.
        next_model: The model whose vectors are being made; None if the model does not change.
        next_embedded: How many chunks have a vector of ``next_model``.
        token_states: How many chunks with a vector have token states too; None if the model has
            none. The others get theirs when a search needs them, and in the background.
        english_model: The model of English that stands beside ``model``; None if none is here.
        english_waiting: How many chunks wait to be looked at, whether they get a vector of it.
        embedding_left_s: About how many seconds the missing vectors take: as fast as the latest
            ones were made, else as the built-in model makes them on a laptop.
        last_indexed: When a collection was last scanned to the end, ISO 8601 UTC.
        total_documents: A file that lies in several collections counts once, as searches show it;
            in ``collections`` it counts for each, and so do its chunks.
        excluded: Reason → how many files and folders the rules left out.
        excluded_kinds: Kind (``PDF``, ``photo``) → how many files the rules left out, the most
            frequent kinds first; without hidden files, and files below folders that are left out.
        pictures: Pages without a text layer, and photos.
        pictures_waiting: Those whose text was not read yet.
        pictures_failed: Those whose text cannot be read; `qmd why FILE` says why.
        ocr_left_s: About how many seconds reading those that wait takes.
        ocr_problem: Why nothing reads them here, with what to do; None if nothing is in the way.
    """

    database: str
    database_bytes: int
    total_documents: Annotated[int, Range(0)]
    needs_embedding: Annotated[int, Range(0), Describe("Distinct contents without vectors")]
    chunks: int
    chunks_embedded: int
    chunks_outdated: int
    has_vector_index: bool
    model: str | None
    next_model: str | None
    next_embedded: int
    token_states: int | None
    last_indexed: str | None
    collections: tuple[Collection, ...]
    skipped: tuple[SkippedFile, ...]
    excluded: Mapping[str, int]
    excluded_kinds: Mapping[str, int] = field(default_factory=dict)
    embedding_left_s: float = 0.0
    pictures: int = 0
    pictures_waiting: int = 0
    pictures_failed: int = 0
    ocr_left_s: float = 0.0
    ocr_problem: str | None = None
    english_model: str | None = None
    english_waiting: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """
    The figures of a database that cost little, however large it is; `Status` has all of them.

    Attributes:
        database: The path of the file.
        chunks_waiting: How many chunks have no vector.
        model, next_model, next_embedded: As in `Status`.
        skips: How many files were skipped, by collection and reason.
        excluded: Reason → how many files and folders the rules left out.
        pictures, pictures_waiting, english_model, english_waiting: As in `Status`.
    """

    database: str
    database_bytes: int
    documents: int
    chunks: int
    chunks_waiting: int
    model: str | None
    next_model: str | None
    next_embedded: int
    collections: tuple[Collection, ...]
    skips: tuple[SkipCount, ...]
    excluded: Mapping[str, int]
    pictures: int = 0
    pictures_waiting: int = 0
    english_model: str | None = None
    english_waiting: int = 0


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far the index is behind the disk."""

    last_sync: Annotated[str | None, Describe("When it was last known to agree, ISO 8601")]
    files_pending: Annotated[int, Range(0), Describe("Changed files that are not indexed yet")]
    embeddings_pending: Annotated[int, Range(0), Describe("Distinct contents without vectors")]
    indexing: Annotated[bool, Describe("Whether files are being indexed just now")]
    #: Whether this process keeps the index.
    leader: Annotated[bool, NotSent()]
    #: "off" while no process keeps the index, "polling" where a collection has no native events.
    watch: Annotated[Literal["native", "polling", "off"], NotSent()] = "off"
    notices: Annotated[
        tuple[str, ...], Name("problems"), OmitDefault(), Describe("What is wrong, in sentences")
    ] = ()
    #: Whether the process that keeps the index also makes the missing vectors.
    embedding: Annotated[bool, NotSent()] = False
    replica_lag_s: Annotated[
        float | None,
        OmitDefault(),
        Range(0),
        Describe("Seconds that the replica which answers is behind"),
    ] = None
    keeper: Annotated[
        str | None, OmitDefault(), Describe("Which process keeps the index, on which machine")
    ] = None
    keeper_heard_of: Annotated[
        str | None, OmitDefault(), Describe("When it was last heard of, ISO 8601")
    ] = None


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """A collection, and when it last changed."""

    collection: Annotated[
        Collection, Inline("name", "path", "pattern", "documents", "last_updated", "missing")
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
    """
    One finding of `qmd doctor`.

    The classmethods make one whose message and remedy may have fields in braces.
    """

    name: str
    status: Literal["ok", "warning", "error"]
    message: str
    remedy: str | None = None

    @classmethod
    def ok(cls, name: str, message: str, /, **fields: object) -> Check:
        return cls(name, "ok", _filled(message, fields))

    @classmethod
    def warning(
        cls, name: str, message: str, remedy: str | None = None, /, **fields: object
    ) -> Check:
        return cls(name, "warning", _filled(message, fields), remedy and _filled(remedy, fields))

    @classmethod
    def error(
        cls, name: str, message: str, remedy: str | None = None, /, **fields: object
    ) -> Check:
        return cls(name, "error", _filled(message, fields), remedy and _filled(remedy, fields))


def _filled(text: str, fields: Mapping[str, object]) -> str:
    """A sentence with those of the fields that it names."""
    named = {name: value for name, value in fields.items() if f"{{{name}}}" in text}
    return engine_text(text, **named) if named else text


@dataclass(frozen=True, slots=True)
class Rescued:
    """
    How much `rescue` has saved from a damaged database.

    Attributes:
        revisions: How many earlier contents of files were saved.
        lost: Table → how many rows could not be read, as far as that can be told.
        kept: The path of the damaged database now.
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

    Attributes:
        kind: "english" is the one beside the default model, which orders English hits.
        ready: Whether the model can be used without a download.
        state: "active" if its vectors answer searches, "coming" if they are being made.
    """

    name: str
    kind: Literal["embedding", "english", "reranker"]
    dimension: int | None
    source: str  # "embedded", "hub", "folder", "server", "plugin" or "unknown"
    size_bytes: int | None = None
    languages: str | None = None
    license: str | None = None
    ready: bool = False
    state: Literal["active", "coming"] | None = None


@dataclass(frozen=True, slots=True)
class ModelChange:
    """
    A change of the embedding model that `models.use` has begun.

    Attributes:
        before: The model that answers searches until the change is finished; None without one.
        waiting: How many chunks need a vector of the new model.
        kept: Whether a process makes these vectors in the background.
    """

    model: str
    dimension: int
    before: str | None
    waiting: int
    kept: Annotated[bool, Name("in_background")]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """
    The properties of an embedding model that the index depends on.

    Attributes:
        fingerprint: Differs between models whose vectors differ (weights, pooling, prefixes).
            Vectors of different fingerprints are never compared.
        max_tokens: A longer text is split before it is embedded.
        cosine_low, cosine_high: A cosine at or below the first scores 0, at or above the second 1,
            in between linearly. Measured for each model; see docs/models.md.
    """

    name: str
    fingerprint: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    cosine_low: float = 0.0
    cosine_high: float = 1.0


@dataclass(frozen=True, slots=True)
class Collection:
    """
    An indexed directory and the rules that say which of its files are documents.

    Times are in UTC.

    Attributes:
        path: The absolute path of the directory.
        pattern: Globs of the files that are documents, separated by commas.
        ignore: Patterns of files to leave out, as in a .gitignore.
    """

    id: Annotated[int, NotSent()]
    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    documents: Annotated[int, Range(0)]
    last_updated: Annotated[str | None, Describe("When a document last changed, ISO 8601")]
    last_indexed: Annotated[str | None, Describe("When it was last scanned to the end, ISO 8601")]
    included: Annotated[bool, Describe("Whether searches that name no collection look in it")] = (
        True
    )
    owner: Annotated[str, OmitDefault(), Describe("Whose folder it is, if it was pushed")] = ""
    missing: Annotated[
        bool, OmitDefault(), Describe("Whether its folder is not there, or cannot be read")
    ] = False
