"""
The requests and replies of REST that are not those of a tool.

`qmd.server.openapi` describes the API with these classes, and the endpoints answer with them, so
the two cannot differ. `Inline` lists the fields of a value that a reply sends; the class of the
value describes these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from qmd.tools.arguments import Arguments, OptionalText
from qmd.values.chats import MAX_QUESTION
from qmd.values.facts import Describe

# --- requests ------------------------------------------------------------------------

_NOT_BLANK: dict[str, Any] = {"pattern": r"\S"}


class NoArguments(Arguments):
    pass


class ChatArguments(Arguments):
    question: str = Field(
        description="What to ask the agent",
        json_schema_extra={"maxLength": MAX_QUESTION, **_NOT_BLANK},
    )
    chat: OptionalText = Field(None, description="Go on with this conversation; none for a new one")
    mode: Literal["read", "write"] = Field(
        "read", description="write: the agent may change files, and each change waits for /answer"
    )
    wait: bool = Field(True, description="Answer when the turn has ended; false: at once")


class ChatAnswerArguments(Arguments):
    question: str = Field(description="The question that waits, as its event names it")
    agreed: bool = Field(description="Whether the change may be written")


class ChatRetryArguments(Arguments):
    wait: bool = Field(True, description="Answer when the turn has ended; false: at once")


# --- replies -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Error:
    """Every error has this shape."""

    detail: Annotated[str, Describe("What is wrong, and what to do next")]
    status_code: Annotated[int, Describe("The HTTP status again")]


@dataclass(frozen=True, slots=True)
class ChatDone:
    status: Literal["stopping", "answered", "deleted"]
    chat: str
