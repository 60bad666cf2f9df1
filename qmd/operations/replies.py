"""Defines the reply of a tool: blocks that a person or a model reads, and the same for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from qmd.values import DocumentInfo, LeftOut
from qmd.values.facts import Describe, Name, OmitDefault
from qmd.values.text import escape_json


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text for a person or a model to read."""

    text: str


def json_block(value: Mapping[str, Any]) -> TextBlock:
    """A value as JSON, without raw characters that would hide or turn around what follows."""
    return TextBlock(escape_json(json.dumps(value, ensure_ascii=False)))


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """
    A document in a reply.

    ``text`` is cut and numbered; ``heading`` stands above it where the `Dialect` has one.
    """

    SENT: ClassVar[tuple[str, ...]] = (
        "uri",
        "name",
        "title",
        "mime_type",
        "text",
        "context",
        "left_out",
        "same_name",
    )

    document: DocumentInfo
    text: str
    context: Annotated[str | None, Describe("What people said about the place it lies in")]
    left_out: Annotated[
        LeftOut | None, OmitDefault(), Describe("The lines for which there was no room")
    ] = None
    same_name: Annotated[
        tuple[int, ...], OmitDefault(), Describe("Lines of other headings or blocks of this name")
    ] = ()

    @property
    def shown(self) -> str:
        """What a person or a model reads."""
        return self.heading + self.text

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def name(self) -> Annotated[str, Describe("collection/path")]:
        return self.document.file

    @property
    def title(self) -> str:
        return self.document.title

    @property
    def mime_type(self) -> Annotated[Literal["text/markdown"], Name("mimeType")]:
        return "text/markdown"

    heading: str = ""
    #: The lines of the document that ``text`` holds, counted from 1; a last line of 0 is none.
    first_line: int = 1
    last_line: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """
    The result of a call.

    Attributes:
        blocks: What a person or a model reads.
        structured: The same for programs, as JSON; None if the tool has no structured content.
        is_error: Whether the call failed.
        code: That of the error, if the call raised one; "" otherwise.
        whole: The note whose whole text the reply is, and its lines; None if it is none.
    """

    blocks: tuple[TextBlock | DocumentBlock, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False
    code: str = ""
    whole: tuple[str, int] | None = None
