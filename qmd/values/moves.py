"""The reply about a note that was moved or renamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.values.facts import Describe, OmitDefault

#: The most notes and the most links that a reply lists; the counts are those of all.
MAX_LISTED = 200


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
            moved text, after a preview that of the text at the old path; None if it is no text.
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
