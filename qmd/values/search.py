"""What is stored, what a search is to find, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote

from qmd.values.facts import Describe, Name, NotSent, OmitDefault, Range

Match = Literal["exact", "relaxed", "semantic"]
Source = Literal["fts", "vec"]


def encode_uri(file: str) -> str:
    """``qmd://`` and each path segment percent-encoded as encodeURIComponent does, slashes kept."""
    return "qmd://" + "/".join(quote(part, safe="!'()*~-_.") for part in file.split("/"))


@dataclass(frozen=True, slots=True)
class Context:
    """A description of everything below a path prefix; collection None means all collections."""

    collection: str | None
    prefix: str  # below the collection, "" for all of it
    path: str  # as listed: a directory on the disk, or "/"
    text: str

    @property
    def uri(self) -> str:
        if self.collection is None:
            return "/"
        return encode_uri("/".join(filter(None, (self.collection, self.prefix))))


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document without its text: a row of `qmd ls`."""

    id: int
    collection: str
    path: str
    title: str
    docid: str  # "#" and six or more hex digits
    bytes: int
    modified: str  # ISO 8601 UTC

    @property
    def file(self) -> str:
        """The display path, ``collection/path``: what every face prints and accepts."""
        return f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy, before the limit. Dates are ISO 8601: after ≤ date < before."""

    collections: tuple[str, ...] = ()
    path: str | None = None
    tags: tuple[str, ...] = ()
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """
    One document that answers a query.

    ``file`` is the display path, ``collection/path``: what every face prints and accepts.
    """

    docid: Annotated[str, Describe("# and six or more hex digits; /get takes it")]
    file: Annotated[str, Describe("collection/path; /get takes it")]
    title: str
    score: Annotated[float, Range(0, 1), Describe("Orders the hits")]
    context: Annotated[str | None, Describe("What people said about the place it lies in")]
    snippet: Annotated[str, Describe("Lines 'N: text' with their numbers in the document")]
    line: Annotated[int, Range(1), Describe("The best line of the snippet")]
    relevance: Annotated[
        float, Range(0, 1), Describe("The estimated chance that it answers the query")
    ]
    match: Match
    explain: Annotated[
        Mapping[str, Any] | None,
        OmitDefault(),
        Describe("With explain: how the score came about"),
    ] = None

    @property
    def collection(self) -> str:
        return self.file.partition("/")[0]

    @property
    def path(self) -> str:
        """Below the collection."""
        return self.file.partition("/")[2]

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class SearchReply:
    """
    The hits of one query, and what they lack.

    ``degraded`` is a sentence, or None.
    """

    query: Annotated[str, NotSent()]
    hits: Annotated[tuple[Hit, ...], Name("results"), Describe("Best first")]
    degraded: Annotated[
        str | None, OmitDefault(), Describe("What a missing model or index took away")
    ] = None
    needs_embedding: Annotated[
        int, Range(0), OmitDefault(), Describe("Documents that have no vectors yet")
    ] = 0
