"""What was kept for a person: pages of the web, and thoughts."""

from __future__ import annotations

from typing import Annotated, Literal

from qmd.records import dataclass
from qmd.values.facts import Describe, Name, OmitDefault, Range

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
