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

from qmd.operations.collections import NAME
from qmd.tools.arguments import Arguments, Integer, OptionalText
from qmd.values import Collection
from qmd.values.chats import MAX_QUESTION
from qmd.values.facts import Describe, Inline, OmitDefault
from qmd.values.pushes import MAX_FILES

MAX_TEXTS = 1000
"""The most texts of one request to /embed."""

MAX_PAGE = 1000
"""The most documents on one page of the listing."""

# --- requests ------------------------------------------------------------------------

_TEXTS: dict[str, Any] = {"minItems": 1}  # too many are a 413, not a 400
_NOT_BLANK: dict[str, Any] = {"pattern": r"\S"}


class NoArguments(Arguments):
    pass


class EmbedArguments(Arguments):
    texts: list[str] = Field(description=f"1 to {MAX_TEXTS} texts", json_schema_extra=_TEXTS)
    kind: Literal["query", "passage"] = Field(
        "passage", description="Some models embed questions and passages differently"
    )
    tokens: bool = Field(False, description="Send the states of the tokens, too")


class AddCollectionArguments(Arguments):
    name: Annotated[str, NAME] = Field(
        description="The name of the collection; no / \\ , # ? * [ ] { }"
    )
    path: str = Field(description="A directory on the server's disk, below a write root")
    glob_pattern: OptionalText = Field(
        "**/*.md", description="Which files are documents; several globs by comma or braces"
    )


class AddContextArguments(Arguments):
    path: str = Field(
        description="A directory or file of a collection, qmd://collection/prefix, or / for all"
    )
    text: str = Field(
        description="What lies below the path, in a sentence", json_schema_extra=_NOT_BLANK
    )


_HASH: dict[str, Any] = {"pattern": "^[0-9a-f]{64}$"}
_BASE64: dict[str, Any] = {
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
}


class PushedFilesArguments(Arguments):
    after: str = Field("", description="The last path of the page before; none for the first")


class SentFileArguments(Arguments):
    path: str = Field(description="Relative to the folder, with /")
    bytes: Integer = Field(ge=0)
    mtime_ns: Integer = Field(ge=0, description="Nanoseconds since 1970")
    sha256: str = Field(description="Of the content, in hex", json_schema_extra=_HASH)
    moved_from: OptionalText = Field(None, description="A path that has this content already")


class SentPartArguments(Arguments):
    sha256: str = Field(description="Of the whole file, in hex", json_schema_extra=_HASH)
    offset: Integer = Field(0, ge=0, description="Where in the file the part begins")
    content: str = Field(description="The bytes, in Base64", json_schema_extra=_BASE64)


class PushArguments(Arguments):
    owner: str = Field(max_length=200, description="Whose folder it is, for people")
    pattern: str = Field("**/*.md", description="Which files are documents")
    files: list[SentFileArguments] = Field([], max_length=MAX_FILES)
    parts: list[SentPartArguments] = Field([], max_length=MAX_FILES)
    deleted: list[str] = Field([], max_length=MAX_FILES, description="Paths that are gone")


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
class EmbeddedTokens:
    """The token states of a text."""

    ids: Annotated[tuple[int, ...], Describe("The distinct tokens of the text, by their numbers")]
    states: Annotated[str, Describe("The mean state of each token: float16, little-endian, base64")]


@dataclass(frozen=True, slots=True)
class EmbedReply:
    embeddings: Annotated[
        tuple[tuple[float, ...], ...], Describe("A unit vector for each text, in order")
    ]
    model: Annotated[str, Describe("The embedding model's name")]
    fingerprint: Annotated[str, Describe("Vectors of different fingerprints do not mix")]
    tokens: Annotated[
        tuple[EmbeddedTokens, ...],
        OmitDefault(),
        Describe("Token states of each text, if asked for and if the model gives them"),
    ] = ()


@dataclass(frozen=True, slots=True)
class CollectionAdded:
    status: Literal["added"]
    collection: Annotated[Collection, Inline("name", "path", "documents")]
    content: str
    errors: Annotated[tuple[str, ...], OmitDefault(), Describe("What could not be indexed")] = ()
    notice: Annotated[
        str | None, OmitDefault(), Describe("Which other collections share files")
    ] = None


@dataclass(frozen=True, slots=True)
class ContextAdded:
    status: Literal["added"]
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextRemoved:
    status: Literal["removed"]
    path: str


@dataclass(frozen=True, slots=True)
class ChatDone:
    status: Literal["stopping", "answered", "deleted"]
    chat: str


@dataclass(frozen=True, slots=True)
class Health:
    status: Literal["healthy", "unhealthy"]
    model_loaded: Annotated[bool, Describe("Whether the embedding model is in memory")]
