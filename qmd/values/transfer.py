"""Has what goes from one machine or program to another: imports, exports, pushed folders."""

from __future__ import annotations

from typing import Annotated, Literal

from qmd.records import dataclass, field
from qmd.values.chats import ChatMode
from qmd.values.facts import Describe, Inline, InSchema, OmitDefault, Range
from qmd.values.writing import FileAction

ImportedState = Literal["new", "present"]


@dataclass(frozen=True, slots=True)
class PlannedContext:
    """
    A sentence about what lies below a path.

    Attributes:
        prefix: Relative to the root of the collection; "" for the root.
    """

    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class PlannedCollection:
    """
    A folder that another program has, with what qmd takes of its settings.

    Attributes:
        name: The name to give it; None for that of the folder.
        path: The absolute path of the folder, which may be missing.
        included: Whether searches that name no collection look in it.
        owner: Whose folder it is, if another machine pushed it.
    """

    name: str | None
    path: str
    pattern: str = "**/*.md"
    ignore: tuple[str, ...] = ()
    included: bool = True
    contexts: tuple[PlannedContext, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A setting, folder or file that qmd did not take."""

    subject: Annotated[str, Describe("What it is")]
    reason: Annotated[str, Describe("Why, and what to do instead")]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """
    What a configuration file of another program says.

    Attributes:
        source: The file.
        global_context: A sentence about all collections; "" for none.
        names_are_free: Whether a collection may get another name if its own is taken.
    """

    source: str
    collections: tuple[PlannedCollection, ...]
    global_context: str = ""
    not_taken: tuple[NotTaken, ...] = ()
    names_are_free: bool = False


@dataclass(frozen=True, slots=True)
class ImportedCollection:
    """A folder that is a collection now."""

    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    included: bool
    contexts: Annotated[int, Describe("How many contexts it brought")]
    state: Annotated[ImportedState, Describe("present: it was a collection before")]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import added, or with ``dry_run`` would add."""

    source: Annotated[str, Describe("The file that was read")]
    dry_run: bool
    collections: tuple[ImportedCollection, ...]
    contexts: Annotated[int, Describe("How many contexts were added, the one for all included")]
    not_taken: tuple[NotTaken, ...]


@dataclass(frozen=True, slots=True)
class ConversationsReport:
    """
    What an export of conversations brought, or with ``dry_run`` would bring.

    Attributes:
        folder: ``collection/folder`` of the new notes.
        change: The number of the change, for undo; None if nothing was written.
        problem: A sentence that says why searches do not have the notes yet; None if they do.
    """

    source: Annotated[str, Describe("The file")]
    folder: Annotated[str, Describe("collection/folder of new notes")]
    dry_run: bool
    new: Annotated[int, Describe("Notes that were written")]
    updated: Annotated[int, Describe("Notes of conversations that went on")]
    unchanged: Annotated[int, Describe("Notes that stay as they are")]
    change: Annotated[int | None, Describe("Its number, for undo"), OmitDefault()] = None
    problem: Annotated[
        str | None, Describe("Why searches lack the notes so far"), OmitDefault()
    ] = None


@dataclass(frozen=True, slots=True)
class UnpackReport:
    """What an archive of notes brought, or with ``dry_run`` would bring."""

    archive: str
    folder: str
    dry_run: bool
    files: Annotated[int, Describe("How many files were written")]
    present: Annotated[int, Describe("How many were there already, with the same content")]
    bytes: Annotated[int, Describe("How long the written files are")]
    encoding: Annotated[str, Describe("That of names that do not say theirs")]
    not_taken: tuple[NotTaken, ...]


# --- exports ----------------------------------------------------------------------------
# The records of an export are what a knowledge base holds that the files of the notes do not. Each
# is written in its wire form, one JSON object a line. A field that is added later has a default, so
# that exports of earlier versions can be read.

#: Raised when an older qmd could not read what is written.
EXPORT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ExportHead:
    """
    What an export says of itself, in ``export.json``.

    Attributes:
        qmd: The version of the program that wrote it.
        created: ISO 8601 UTC.
    """

    format: Literal["qmd export"]
    version: int
    qmd: str
    created: str


@dataclass(frozen=True, slots=True)
class ExportedCollection:
    """A collection without its documents, which are files."""

    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...]
    included: bool = True
    owner: Annotated[str, OmitDefault()] = ""


@dataclass(frozen=True, slots=True)
class ExportedContext:
    """A context; of all collections if ``collection`` is None."""

    collection: str | None
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class KeptChange:
    """
    A call of a tool that changed files, as the store keeps it.

    Attributes:
        files: How many files it changed, of which perhaps not all revisions are kept.
        undone_by: The number of the change that undid it.
    """

    number: int
    tool: str
    session: str
    number_in_session: int
    created: str
    files: int
    undone_by: int | None = None


@dataclass(frozen=True, slots=True)
class KeptRevision:
    """
    What a change did to one file, as the store keeps it; `Revision` explains the fields.

    The content is a file of its own, named by its ``hash``; of the kind "none" there is none.
    """

    number: int
    path: str
    hash: str
    bytes: int
    kind: Literal["content", "metadata", "none"]
    tool: str
    created: str
    change: int | None
    action: FileAction
    hash_after: str | None = None
    moved_from: str | None = None


@dataclass(frozen=True, slots=True)
class ExportedChat:
    """
    A conversation without its turns.

    Attributes:
        summary: What the model wrote of the first ``summarized`` turns.
    """

    id: str
    name: str
    mode: ChatMode
    created: str
    updated: str
    summary: str
    summarized: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export holds."""

    target: Annotated[str, Describe("The folder or the archive")]
    bytes: Annotated[int, Describe("How long its files are, before they are compressed")]
    collections: int
    contexts: int
    changes: Annotated[int, Describe("How many writes of tools, which can be undone")]
    revisions: Annotated[int, Describe("How many earlier states of files")]
    chats: Annotated[int, Describe("How many conversations")]
    settings: Annotated[bool, Describe("Whether config.toml is among them")]
    damaged: Annotated[int, Describe("How many earlier contents could not be read")] = 0


@dataclass(frozen=True, slots=True)
class ReturnReport:
    """What the import of an export added, or with ``dry_run`` would add."""

    folders: Annotated[
        ImportReport, Inline("source", "dry_run", "collections", "contexts", "not_taken")
    ]
    changes: int
    revisions: int
    chats: int
    settings: Annotated[str | None, Describe("The text of its config.toml; it is not applied")]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy of a knowledge base into another database added."""

    target: Annotated[str, Describe("The database, without its password")]
    collections: int
    documents: int
    unchanged: Annotated[int, Describe("Documents that were there already")]
    vectors: Annotated[int, Describe("Chunks that got their vectors")]
    token_states: Annotated[int, Describe("Texts that got their token states")]
    changes: int
    revisions: int
    conversations: int
    not_taken: Annotated[
        tuple[NotTaken, ...], Describe("What differs there and was left as it is")
    ] = ()


# --- pushed folders ---------------------------------------------------------------------

#: The most files in one push, and in one page of the listing.
MAX_FILES = 2_000
MAX_LISTED = 20_000
#: The most bytes of one file. Photos are the largest files that are indexed.
MAX_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class PushedFile:
    """A file as the server has it; two files of one size and time are taken for the same."""

    path: Annotated[str, Describe("Relative to the folder, with /")]
    bytes: Annotated[int, Range(0)]
    mtime_ns: Annotated[int, Describe("When it was changed, in nanoseconds since 1970")]


@dataclass(frozen=True, slots=True)
class PushedFiles:
    """One page of the files that a server has of a pushed folder, in the order of their paths."""

    files: tuple[PushedFile, ...]
    more: Annotated[bool, Describe("Whether there are files after the last one of this page")]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that the server is to have."""

    path: Annotated[str, Describe("Relative to the folder, with /")]
    bytes: Annotated[int, Range(0)]
    mtime_ns: Annotated[int, Range(0), Describe("Nanoseconds since 1970")]
    sha256: Annotated[str, Describe("Of the content, in hex"), InSchema(pattern="^[0-9a-f]{64}$")]
    moved_from: Annotated[str | None, Describe("A path that has this content already")] = None


@dataclass(frozen=True, slots=True)
class SentPart:
    """
    A piece of a file's content.

    Attributes:
        sha256: Of the whole file.
        offset: Where in the file the piece begins.
    """

    sha256: str
    offset: int
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Push:
    """
    One step of a push: first the parts are stored, then the files made of them, then deletions.

    Attributes:
        owner: Whose folder it is, for people.
        pattern: Which of the files are documents.
        deleted: Paths that the folder has no longer.
    """

    owner: str
    pattern: str
    files: tuple[SentFile, ...] = ()
    parts: tuple[SentPart, ...] = ()
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeededContent:
    """Content that the server lacks: send its parts from ``offset`` on, then the file again."""

    sha256: str
    offset: Annotated[int, Range(0), Describe("How many bytes of it the server has")]


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that the server does not take."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PushReport:
    """The result of one step of a push. What it counts as stored is indexed, and can be found."""

    collection: str
    stored: Annotated[int, Range(0)]
    unchanged: Annotated[int, Range(0)]
    deleted: Annotated[int, Range(0)]
    needed: tuple[NeededContent, ...]
    refused: tuple[RefusedFile, ...]
