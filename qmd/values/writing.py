"""What tools write: edits, moves and notes, and what was kept for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from qmd.records import dataclass
from qmd.values.facts import Describe, Name, NotSent, OmitDefault, Range

EditAction = Literal[
    "replace",
    "replace_section",
    "insert_before",
    "insert_after",
    "append",
    "prepend",
    "set_property",
    "remove_property",
    "tick",
    "untick",
]
PropertyValue = str | int | float | bool | tuple[str | int | float | bool, ...] | None

UndoAction = Literal["restored", "deleted", "moved back", "unchanged"]
_OPPOSITE: dict[FileAction, FileAction] = {"create": "delete", "delete": "create"}
#: The most notes and the most links that a reply lists; the counts are those of all.
MAX_LISTED = 200
#: What a tool did to a file; "write" replaced its content, also by an append.
FileAction = Literal["create", "write", "move", "delete"]


@dataclass(frozen=True, slots=True)
class NoteEdit:
    """
    One edit of a note's text. Each action needs some of the fields; the others stay None.

    Attributes:
        action: "replace" needs ``old`` and ``text``; "replace_section", "insert_before" and
            "insert_after" need ``heading`` and ``text``; "append" (at the end of the note, or of
            the section ``heading``) and "prepend" (below the frontmatter) need ``text``;
            "set_property" needs ``property`` and ``value``, "remove_property" needs ``property``;
            "tick" and "untick" need ``old`` (the text of a task) or ``line``; with both, the task
            in this line must have this text.
        text: The new text. Its line ends become those of the note.
        old: The text to replace, which must occur exactly once; or the text of a task.
        heading: ``Heading`` or ``Heading#Sub``.
        line: The line of a task, counted from 1.
    """

    action: EditAction
    text: str | None = None
    old: str | None = None
    heading: str | None = None
    property: str | None = None
    value: PropertyValue = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class NoteSource:
    """
    A note as an editor shows it.

    Attributes:
        file: ``collection/path``.
        text: The whole text as it is on the disk, with ``\\n`` at the end of each line.
        docid: The whole hash of the text with its own line ends, for ``if_docid``.
        refusal: Sentences that say why it cannot be written; None if it can.
    """

    file: str
    text: str
    docid: str
    refusal: str | None


@dataclass(frozen=True, slots=True)
class EditedNote:
    """
    A note that was edited or deleted, or would be.

    Attributes:
        file: ``collection/path``.
        docid: That of the note as it is now, for the next ``if_docid``: of the new text once it is
            written, of the old one after a preview; None for a deleted note.
        written: False for a preview, and if the edit changes nothing.
        diff: A unified diff; of a long one only the beginning.
        change: The number of the change, for undo; None if nothing was written.
        problem: A sentence that says why searches do not have the new text yet; None if they do.
    """

    file: Annotated[str, Describe("collection/path")]
    docid: Annotated[str | None, Describe("Of the note as it is now, for if_docid")]
    written: Annotated[bool, Describe("False for a preview, and if nothing differs")]
    diff: Annotated[str, Describe("Unified diff")]
    change: Annotated[int | None, Describe("Its number, for undo"), OmitDefault()] = None
    problem: Annotated[
        str | None, Describe("Why searches lack the new text so far"), OmitDefault()
    ] = None


@dataclass(frozen=True, slots=True)
class UndoneFile:
    """
    A file that has its earlier state again.

    Attributes:
        file: ``collection/path``, or the absolute path of a file outside all collections.
        action: What the undo did; "unchanged" if the file had this state already.
        undid: What the change had done.
        moved_from: Where it lay before it was moved back.
    """

    file: str
    action: UndoAction
    undid: Annotated[FileAction, Describe("What the change had done")]
    moved_from: Annotated[str | None, OmitDefault()] = None


@dataclass(frozen=True, slots=True)
class UndoneChange:
    """A change that was undone, with all its files."""

    change: Annotated[int, Describe("Its number")]
    tool: str
    created: Annotated[str, Describe("When it was written, ISO 8601 UTC")]
    files: tuple[UndoneFile, ...]

    @property
    def is_redo(self) -> bool:
        """Whether it was an undo, so that what it had undone is done again."""
        return self.tool == "undo"

    @property
    def first(self) -> tuple[FileAction, UndoneFile] | None:
        """Its first file, with what was undone there; of a redo, what is done again."""
        if not self.files:
            return None
        # They are in the order in which they were undone: for an undo, that of the change.
        file = self.files[0 if self.is_redo else -1]
        return _OPPOSITE.get(file.undid, file.undid) if self.is_redo else file.undid, file


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """
    A change that was not undone, because a file is not as the change left it, or not restorable.

    Attributes:
        file: The first such file.
        diff: What has changed in the file since, or else what undoing would change; maybe empty.
    """

    change: Annotated[int, Describe("Its number")]
    tool: str
    created: Annotated[str, Describe("When it was written, ISO 8601 UTC")]
    file: str
    reason: str
    diff: Annotated[str, Describe("Unified diff"), OmitDefault()] = ""


@dataclass(frozen=True, slots=True)
class UndoReply:
    """
    What an undo has done.

    Attributes:
        undone: The changes that were undone, the newest first.
        refused: The changes that were not; their files are as they were.
        change: The number of the undo itself: undoing it restores what it undid. None if no file
            was changed.
        not_kept: How many earlier changes of the session are not kept any more.
        problem: A sentence that says why searches do not have the restored texts yet; None if they
            do.
        earlier: The number of the newest change before a refused one that can be undone (of a redo
            the newest undo); None if none was refused, or if there is none.
    """

    undone: tuple[UndoneChange, ...]
    refused: tuple[RefusedChange, ...] = ()
    change: Annotated[int | None, Describe("Undo this number to redo"), OmitDefault()] = None
    not_kept: Annotated[int, Describe("Changes too old to be undone"), OmitDefault()] = 0
    problem: Annotated[
        str | None, Describe("Why searches lack the restored texts so far"), OmitDefault()
    ] = None
    earlier: Annotated[
        int | None, Describe("A change before the refused one that can be undone"), OmitDefault()
    ] = None


@dataclass(frozen=True, slots=True)
class RewrittenNote:
    """
    A note whose links were rewritten, or would be.

    Attributes:
        file: ``collection/path`` after the move.
        links: How many links.
        diff: A unified diff; of a long one only the beginning.
    """

    file: Annotated[str, Describe("collection/path")]
    links: int
    diff: Annotated[str, Describe("Unified diff")]


@dataclass(frozen=True, slots=True)
class UnchangedLink:
    """
    A link that loses its target by the move and was not rewritten.

    Attributes:
        file: The note with the link, after the move.
        line: From 1; None if the note could not be read.
        link: As it is written; None if the note could not be read.
    """

    file: Annotated[str, Describe("collection/path")]
    line: int | None
    link: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class MovedNote:
    """
    A note that was moved, or would be.

    Attributes:
        file: ``collection/path`` after the move.
        moved_from: ``collection/path`` before.
        docid: That of the note as it is now, for the next ``if_docid``: after the move that of the
            moved text, after a preview that of the text at the old path; None if it is no document.
        written: False for a preview.
        notes: How many notes were rewritten, or would be; ``rewritten`` lists the first.
        links: How many links in these.
        unchanged_links: How many links lose their target; ``unchanged`` lists the first.
        change: The number of the change, for undo; None if nothing was written.
        problem: Sentences that say why searches do not find the note at the new path: a rule that
            leaves it out (also in a preview), or a failed update of the index; None if they do.
    """

    file: Annotated[str, Describe("collection/path")]
    moved_from: str
    docid: Annotated[str | None, Describe("Of the note as it is now, for if_docid")]
    written: Annotated[bool, Describe("False for a preview")]
    notes: Annotated[int, Describe("Notes with rewritten links")] = 0
    links: Annotated[int, Describe("Rewritten links")] = 0
    rewritten: tuple[RewrittenNote, ...] = ()
    unchanged_links: Annotated[int, Describe("Links that lose their target")] = 0
    unchanged: tuple[UnchangedLink, ...] = ()
    change: Annotated[int | None, Describe("Its number, for undo"), OmitDefault()] = None
    problem: Annotated[
        str | None, Describe("Why searches lack the new path so far"), OmitDefault()
    ] = None


@dataclass(frozen=True, slots=True)
class Revision:
    """
    A file before a tool changed it.

    Attributes:
        id: Its row in the database.
        number: The number of its change: what `qmd undo` takes, and what history and restore show.
            Of a revision that an earlier version of qmd kept without a change, another number.
        path: The absolute path of the file; of a moved file the new one.
        created: When the tool changed the file, ISO 8601 UTC.
        kind: "content" for the whole file, "metadata" for the metadata of a photo alone, "none" if
            no content is kept: of a file that was created or moved, or that is too long.
        bytes: The length of the content.
        hash: SHA-256 of the content, in hexadecimal; "" if there was no file.
        action: What the tool did to the file.
        moved_from: The earlier absolute path of a moved file; else None.
        session: Which session of a client the tool was called in; "" for revisions of earlier
            versions of qmd.
        change: The number of the change that the revision belongs to; None if an
            earlier version of qmd kept it.
        hash_after: SHA-256 of the content after the change; "" if there was no file any more.
    """

    id: Annotated[int, NotSent()]
    number: Annotated[int, Name("revision")]
    path: str
    created: str
    tool: str
    kind: Literal["content", "metadata", "none"]
    bytes: int
    hash: str
    action: FileAction = "write"
    moved_from: str | None = None
    session: str = ""
    change: int | None = None
    hash_after: Annotated[str | None, NotSent()] = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """
    One call of a tool that changed files.

    Attributes:
        files: What was done to each file, in this order.
        is_kept: Whether all that is needed to undo the change is still kept.
        undone_by: The number of the change that undid this one.
        redone_by: The number of the change that undid the undo: this one is in effect again.
        number_in_session: The first change of a session has the number 1.
    """

    number: Annotated[int, Name("change"), Describe("Its number, for undo")]
    tool: str
    session: str
    created: Annotated[str, Describe("ISO 8601 UTC")]
    files: tuple[Revision, ...]
    is_kept: Annotated[bool, Describe("False: too old to be undone")] = True
    undone_by: Annotated[int | None, Describe("The change that undid it")] = None
    redone_by: Annotated[int | None, Describe("The change that undid the undo")] = None
    number_in_session: Annotated[int, NotSent()] = 0


#: What the tool create_note does with a note that is there.
Mode = Literal["overwrite", "append"]
Action = Literal["created", "overwritten", "appended"]
SummaryMode = Literal["append", "overwrite"]
Language = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Note:
    """
    A note that was read.

    Attributes:
        path: From the root of the vault.
        text: The whole text, with its line ends and a byte order mark.
        encoding: A Python codec name.
        requested: The path that the caller asked for, completed. It differs from ``path`` if it
            does not exist and only this note can be meant.
    """

    path: str
    text: str
    encoding: str
    requested: str


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """
    A note that was written.

    Attributes:
        bytes: The size of the file now.
        problem: Why the index does not have the note, in sentences; None if it has, or if the note
            is in no collection.
    """

    path: str
    action: Action
    bytes: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder, by its name alone."""

    name: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of a folder: folders first, then files, each by name. "" is the root."""

    path: str
    entries: tuple[FolderEntry, ...]


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """
    The file that holds the summary, all links followed, and how it was written.

    ``problem``: why searches do not find the text, in sentences.
    """

    path: Path
    mode: SummaryMode
    problem: str | None = None


SavedAs = Literal["saved", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A page of the web that is a note."""

    file: Annotated[str, Describe("collection/path of the note")]
    title: str
    address: Annotated[str, Describe("Where the page was found")]
    saved_as: Annotated[SavedAs, Name("status"), Describe("What became of the note")]
    docid: str
    pictures: Annotated[int, Range(0), Describe("Pictures kept beside the note")] = 0
    left_out: Annotated[
        int, Range(0), OmitDefault(), Describe("Pictures that could not be kept")
    ] = 0
    document: Annotated[
        str | None, OmitDefault(), Describe("collection/path of a PDF or the like, kept as it is")
    ] = None
    change: Annotated[int | None, OmitDefault(), Describe("Its number, for undo")] = None
    problem: Annotated[
        str | None, OmitDefault(), Describe("Why searches do not find the new text")
    ] = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that belongs to a thought: its name, and its content."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that is kept beside a note, and how the note links to it, in Markdown."""

    file: str
    link: str
    change: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """A thought that stands in a note now."""

    file: Annotated[str, Describe("collection/path of the note")]
    line: Annotated[int, Range(1), Describe("Where the thought begins")]
    docid: str
    attachments: Annotated[
        tuple[str, ...], OmitDefault(), Describe("collection/path of the files beside the note")
    ] = ()
    change: Annotated[int | None, OmitDefault(), Describe("Its number, for undo")] = None
    problem: Annotated[
        str | None, OmitDefault(), Describe("Why searches do not find the new text")
    ] = None
