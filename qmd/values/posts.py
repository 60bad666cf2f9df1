"""Posts of an archive: listed, read and searched. Paths are relative to it, with ``/``."""

from __future__ import annotations

from dataclasses import dataclass


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
    The groups that have posts: motions, then the albums by name. ``unread`` are folders that
    could not be read.
    """

    author: str
    groups: tuple[PostGroup, ...]
    unread: tuple[str, ...] = ()

    @property
    def posts(self) -> tuple[Post, ...]:
        return tuple(post for group in self.groups for post in group.posts)


@dataclass(frozen=True, slots=True)
class PostText:
    """A post and all of its text."""

    post: Post
    text: str


@dataclass(frozen=True, slots=True)
class PostHit:
    """
    A line that holds what was looked for.

    ``lines`` are it and its neighbours without their ends, the first one numbered ``first``;
    ``spans`` are the occurrences in it (character offsets).
    """

    path: str
    line: int
    first: int
    lines: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PostHits:
    """The first hits of ``total``; ``unread`` are files and folders that could not be read."""

    query: str
    hits: tuple[PostHit, ...]
    total: int
    unread: tuple[str, ...]
