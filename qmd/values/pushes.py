"""What one machine sends to the server of a team: the files of its folders (`qmd server push`)."""

from __future__ import annotations

from typing import Annotated

from qmd.records import dataclass, field
from qmd.values.facts import Describe, InSchema, Range

#: The most files in one push, and in one page of the listing.
MAX_FILES = 2_000
MAX_LISTED = 20_000
#: The most bytes of one file. Photos are the largest files that are indexed.
MAX_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class PushedFile:
    """A file as the server has it; two files of one size and time are taken for the same."""

    path: Annotated[str, Describe("Relative to the folder, with /")]
    bytes: Annotated[int, Range(0)]
    mtime_ns: Annotated[int, Describe("When it was changed, in nanoseconds since 1970")]


@dataclass(frozen=True, slots=True)
class PushedFiles:
    """One page of the files that a server has of a pushed folder, in the order of their paths."""

    files: tuple[PushedFile, ...]
    more: Annotated[bool, Describe("Whether there are files after the last one of this page")]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that the server is to have."""

    path: Annotated[str, Describe("Relative to the folder, with /")]
    bytes: Annotated[int, Range(0)]
    mtime_ns: Annotated[int, Range(0), Describe("Nanoseconds since 1970")]
    sha256: Annotated[str, Describe("Of the content, in hex"), InSchema(pattern="^[0-9a-f]{64}$")]
    moved_from: Annotated[str | None, Describe("A path that has this content already")] = None


@dataclass(frozen=True, slots=True)
class SentPart:
    """
    A piece of a file's content.

    Attributes:
        sha256: Of the whole file.
        offset: Where in the file the piece begins.
    """

    sha256: str
    offset: int
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Push:
    """
    One step of a push: first the parts are stored, then the files made of them, then deletions.

    Attributes:
        owner: Whose folder it is, for people.
        pattern: Which of the files are documents.
        deleted: Paths that the folder has no longer.
    """

    owner: str
    pattern: str
    files: tuple[SentFile, ...] = ()
    parts: tuple[SentPart, ...] = ()
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeededContent:
    """Content that the server lacks: send its parts from ``offset`` on, then the file again."""

    sha256: str
    offset: Annotated[int, Range(0), Describe("How many bytes of it the server has")]


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that the server does not take."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PushReport:
    """The result of one step of a push. What it counts as stored is indexed, and can be found."""

    collection: str
    stored: Annotated[int, Range(0)]
    unchanged: Annotated[int, Range(0)]
    deleted: Annotated[int, Range(0)]
    needed: tuple[NeededContent, ...]
    refused: tuple[RefusedFile, ...]
