"""What was kept for a person: pages of the web, and thoughts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

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
    change: Annotated[int | None, OmitDefault(), Describe("Its number, for undo")] = None
    problem: Annotated[
        str | None, OmitDefault(), Describe("Why searches do not find the new text")
    ] = None
