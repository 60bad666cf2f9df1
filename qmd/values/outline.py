"""The outline of a document: its headings, named blocks and their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.values.facts import Describe, Inline, OmitDefault, Range
from qmd.values.search import DocumentInfo

#: The most headings, and the most blocks, of one outline.
MAX_OUTLINED = 1000


@dataclass(frozen=True, slots=True)
class OutlinedHeading:
    """A heading, and the lines of its section, with the headings below it."""

    level: Annotated[int, Range(1, 6)]
    text: str
    line: Annotated[int, Range(1), Describe("Counted from 1")]
    last_line: Annotated[int, Range(1), Describe("The last line of its section")]


@dataclass(frozen=True, slots=True)
class OutlinedBlock:
    """A block with a name (``^name`` at its end)."""

    block: Annotated[str, Describe("Its name, without ^")]
    line: Annotated[int, Range(1), Describe("Counted from 1")]


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """
    The headings and named blocks of a document, in the order of their lines.

    Attributes:
        total: The number of headings; more than are listed where there are very many.
    """

    document: Annotated[DocumentInfo, Inline("docid", "file", "title")]
    lines: Annotated[int, Range(0), Describe("How many lines the document has")]
    headings: tuple[OutlinedHeading, ...]
    blocks: tuple[OutlinedBlock, ...]
    total: Annotated[int, Range(0), Describe("How many headings there are in all")]
    left_out: Annotated[
        int, Range(0), OmitDefault(), Describe("More headings and blocks than max_tokens allows")
    ] = 0

    @property
    def file(self) -> str:
        return self.document.file
