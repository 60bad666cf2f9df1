"""
What REST takes and gives: request models beside those of the tools, and every reply.

`qmd.server.openapi` makes the interface's description from these models, and the endpoints
build their replies with them, so the two cannot differ.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from qmd.tools.arguments import Arguments, Count, Integer, OptionalText
from qmd.tools.schemas import reply_model
from qmd.values import Freshness

MAX_TEXTS = 1000
"""The most texts that one /embed takes."""

MAX_PAGE = 1000
"""The most documents that one page of the listing holds."""

# --- requests ------------------------------------------------------------------------

# What the engine checks, for the description only: its own messages say more than a pattern.
_NAME: dict[str, Any] = {
    "maxLength": 100,
    "pattern": (
        r"^(?!\.\.?$)[^\s~\-/\\,#?*\[\]{}\x00-\x1f\x7f]"
        r"([^/\\,#?*\[\]{}\x00-\x1f\x7f]*[^\s/\\,#?*\[\]{}\x00-\x1f\x7f])?$"
    ),
}
_TEXTS: dict[str, Any] = {"minItems": 1}  # too many are a 413, not a 400
_NOT_BLANK: dict[str, Any] = {"pattern": r"\S"}


class NoArguments(Arguments):
    pass


class EmbedArguments(Arguments):
    texts: list[str] = Field(description=f"1 to {MAX_TEXTS} texts", json_schema_extra=_TEXTS)
    kind: Literal["query", "passage"] = Field(
        "passage", description="Some models embed questions differently from what answers them"
    )


class AddCollectionArguments(Arguments):
    name: str = Field(description="Its name; no / \\ , # ? * [ ] { }", json_schema_extra=_NAME)
    path: str = Field(description="A directory on the server's disk, below a write root")
    glob_pattern: OptionalText = Field(
        "**/*.md", description="Which files are documents; several globs by comma or braces"
    )


class RenameCollectionArguments(Arguments):
    new_name: str = Field(description="The name from now on", json_schema_extra=_NAME)


class UpdateArguments(Arguments):
    pull: bool = Field(
        False,
        description="Fetch and fast-forward collections that are git work trees. Nothing that a"
        " collection brings is run: what cannot be pulled so is told in errors",
    )


class AddContextArguments(Arguments):
    path: str = Field(
        description="A directory or file of a collection, qmd://collection/prefix, or / for all"
    )
    text: str = Field(
        description="What lies below the path, in a sentence", json_schema_extra=_NOT_BLANK
    )


class DocumentsArguments(Arguments):
    prefix: OptionalText = Field(None, description="collection or collection/folder; none for all")
    limit: Count = Field(100, le=MAX_PAGE, description="Most documents to list")
    offset: Integer = Field(0, ge=0, le=999_999, description="How many to leave out at the start")


# --- replies -------------------------------------------------------------------------


class Reply(BaseModel):
    """Base of all replies: what is not set is not sent, what is not described cannot be."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Error(Reply):
    """Every error has this shape."""

    detail: str = Field(description="What is wrong, and what to do next")
    status_code: int = Field(description="The HTTP status again")


class Document(Reply):
    uri: str
    name: str = Field(description="collection/path")
    title: str
    mime_type: Literal["text/markdown"] = Field(alias="mimeType")
    text: str
    context: str | None = Field(description="What people said about the place it lies in")


class Notice(Reply):
    """A file that was skipped, or names that were not found."""

    type: Literal["text"]
    text: str


class GetReply(Reply):
    document: Document
    content: None


class MultiGetReply(Reply):
    results: list[Document | Notice]
    content: None


class CollectionStatus(Reply):
    name: str
    path: str
    pattern: str
    documents: int = Field(ge=0)
    last_updated: str | None = Field(description="When a document last changed, ISO 8601")


class StatusReply(Reply):
    total_documents: int = Field(ge=0)
    needs_embedding: int = Field(ge=0, description="Distinct contents without vectors")
    has_vector_index: bool
    collections: list[CollectionStatus]
    content: str
    freshness: reply_model(Freshness)  # type: ignore[valid-type]


class EmbedReply(Reply):
    embeddings: list[list[float]] = Field(description="A unit vector for each text, in order")
    model: str = Field(description="The embedding model's name")
    fingerprint: str = Field(description="Vectors of different fingerprints do not mix")


class CollectionAdded(Reply):
    status: Literal["added"]
    name: str
    path: str
    documents: int = Field(ge=0)
    content: str
    errors: list[str] = Field([], description="What could not be indexed")


class ListedCollection(Reply):
    name: str
    path: str
    pattern: str
    documents: int = Field(ge=0)


class CollectionList(Reply):
    collections: list[ListedCollection]
    content: str


class CollectionDetails(ListedCollection):
    last_indexed: str | None = Field(description="When it was last scanned to the end, ISO 8601")


class CollectionRemoved(Reply):
    status: Literal["removed"]
    name: str
    content: str


class CollectionRenamed(Reply):
    status: Literal["renamed"]
    old_name: str
    new_name: str
    content: str


class Changes(Reply):
    """What an index run did, in documents."""

    added: int = Field(ge=0)
    updated: int = Field(ge=0)
    moved: int = Field(ge=0)
    removed: int = Field(ge=0)
    unchanged: int = Field(ge=0)
    skipped: int = Field(ge=0)


class Indexed(Reply):
    status: Literal["indexed"]
    collections: int = Field(ge=0)
    total_documents: int = Field(ge=0)
    content: str
    changes: Changes
    errors: list[str] = Field([], description="Collections that could not be scanned")


class Updated(Reply):
    status: Literal["updated"]
    collections: int = Field(ge=0)
    content: str
    changes: Changes
    errors: list[str] = Field([], description="Collections that could not be pulled or scanned")


class ContextAdded(Reply):
    status: Literal["added"]
    path: str
    content: str


class ListedContext(Reply):
    path: str = Field(description="A directory or file, or / for all")
    text: str


class ContextList(Reply):
    contexts: list[ListedContext]


class ContextRemoved(Reply):
    status: Literal["removed"]
    path: str


class Health(Reply):
    status: Literal["healthy", "unhealthy"]
    model_loaded: bool = Field(description="Whether the embedding model is in memory")


class ListedDocument(Reply):
    file: str = Field(description="collection/path; /get takes it")
    uri: str
    collection: str
    path: str
    title: str
    docid: str
    bytes: int = Field(ge=0)
    modified: str = Field(description="ISO 8601")


class DocumentList(Reply):
    documents: list[ListedDocument]
    total: int = Field(ge=0, description="How many there are below the prefix")
    limit: int = Field(ge=1)
    offset: int = Field(ge=0)
