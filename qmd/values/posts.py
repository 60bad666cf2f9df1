"""Posts of an archive: listed, read and searched. Paths are relative to it, with ``/``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from qmd.records import dataclass
from qmd.values.facts import Inline, NotSent


@dataclass(frozen=True, slots=True)
class Post:
    """``date`` (YYYY-MM-DD) and ``title`` are what the file's name says; None: no date."""

    path: str
    date: str | None
    title: str


@dataclass(frozen=True, slots=True)
class PostGroup:
    """A folder of an author and its posts by file name; "motions" is what was posted by itself."""

    name: str
    posts: tuple[Post, ...]


@dataclass(frozen=True, slots=True)
class AuthorPosts:
    """
    The posts of an author, in groups: motions first, then the albums by name.

    ``unread``: the folders that could not be read.
    """

    author: str
    groups: tuple[PostGroup, ...]
    unread: Annotated[tuple[str, ...], NotSent()] = ()

    @property
    def posts(self) -> tuple[Post, ...]:
        return tuple(post for group in self.groups for post in group.posts)


@dataclass(frozen=True, slots=True)
class PostText:
    """A post and all of its text."""

    post: Annotated[Post, Inline()]
    text: str


@dataclass(frozen=True, slots=True)
class PostLine:
    """A line of a post, without its end."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class PostHit:
    """
    A line that holds the query.

    Attributes:
        line: The number of the line, from 1.
        first: The number of the first of ``lines``.
        lines: The line and its neighbours, without line ends.
        spans: Where the query occurs in the line: half-open ranges of characters.
    """

    SENT: ClassVar[tuple[str, ...]] = ("path", "line", "text", "spans", "context")

    path: str
    line: int
    first: int
    lines: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        return self.lines[self.line - self.first]

    @property
    def context(self) -> tuple[PostLine, ...]:
        return tuple(PostLine(number, text) for number, text in enumerate(self.lines, self.first))


@dataclass(frozen=True, slots=True)
class PostHits:
    """The first hits of ``total``; ``unread`` are files and folders that could not be read."""

    SENT: ClassVar[tuple[str, ...]] = ("query", "total", "hits")

    query: str
    hits: tuple[PostHit, ...]
    total: int
    unread: tuple[str, ...]
