"""Revisions, the earlier contents of files, and changes, the calls of tools that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.values.facts import Describe, Name, NotSent

FileAction = Literal["create", "write", "move", "delete"]
"""What a tool did to a file; "write" replaced its content, also by an append."""


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
