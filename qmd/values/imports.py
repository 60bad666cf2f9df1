"""What another program knows of folders and notes, and what became of it here."""

from __future__ import annotations

from typing import Annotated, Literal

from qmd.records import dataclass
from qmd.values.facts import Describe, OmitDefault

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
