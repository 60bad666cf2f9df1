"""What is stored, asked for and found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

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

    ``score`` is 0..1 and orders the hits. ``relevance`` is 0..1: the estimated chance that the
    document answers the query, whatever its rank. ``snippet`` is lines ``N: text``; ``line`` its
    best line.
    """

    docid: str
    collection: str
    path: str
    title: str
    score: float
    context: str | None
    snippet: str
    line: int
    relevance: float
    match: Match
    explain: Mapping[str, Any] | None = None

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class SearchReply:
    """``degraded`` says in one sentence what a missing model or index took away, else None."""

    query: str
    hits: tuple[Hit, ...]
    degraded: str | None = None
    needs_embedding: int = 0
