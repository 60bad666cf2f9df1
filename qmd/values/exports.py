"""
The records of an export: what a knowledge base holds that the files of the notes do not.

Each is written in its wire form, one JSON object a line. A field that is added later has a default,
so that exports of earlier versions can be read.
"""

from __future__ import annotations

from typing import Annotated, Literal

from qmd.records import dataclass
from qmd.values.chats import ChatMode, TurnStatus
from qmd.values.edits import FileAction
from qmd.values.facts import Describe, Inline, OmitDefault
from qmd.values.imports import ImportReport, NotTaken

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
class ExportedTurn:
    """A turn of a conversation; `qmd.store.sql.conversations.StoredTurn` explains the fields."""

    number: int
    question: str
    answer: str
    status: TurnStatus
    started: str
    seconds: float
    process: str
    events: str
    messages: str


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
