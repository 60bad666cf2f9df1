"""Changes of files by tools, and the earlier contents of the files."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from qmd.values import Revision
from qmd.values.revisions import FileAction, FileChange

if TYPE_CHECKING:
    from qmd.values.exports import KeptChange, KeptRevision

#: The most revisions of one file; the oldest are removed first.
MAX_REVISIONS = 20
#: The most bytes of all revisions of one file together.
MAX_REVISION_BYTES = 10 * 1024 * 1024

#: A revision that a version without changes has kept has this number, and that of its row added.
FIRST_WITHOUT_CHANGE = 1_000_000

#: What `Revision.kind` calls "content" may be stored compressed, to fit.
_COMPRESSED = "content, zlib"
_MAX_COMPRESSED_FROM = 8 * MAX_REVISION_BYTES


class RevisionContent(NamedTuple):
    """
    A content in the form that a revision keeps.

    Attributes:
        hash: SHA-256 of the content, in hexadecimal; "" if there was no file.
        size: Bytes of the content.
        stored: The content, compressed if it is long; empty for the kind "none".
        kind: "content", "metadata", "none", or the kind of a compressed content.
    """

    hash: str
    size: int
    stored: bytes
    kind: str


#: The content before a file was created.
NO_FILE = RevisionContent("", 0, b"", "none")


def new_numbers() -> Iterator[int]:
    """
    Numbers for a new change; the first that is free is taken.

    They have six digits (more if most of those are taken), and are random: from the numbers of its
    own changes, a client cannot tell how much changes in collections that it may not see.
    """
    for tries in count():
        least = 10 ** (5 + tries // 20)
        yield least + secrets.randbelow(9 * least)


class FileStep(NamedTuple):
    """
    What a change does to one file; paths are absolute.

    Attributes:
        before: The content before it.
        hash_after: SHA-256 of the content after it, in hexadecimal; "" for a deleted file.
        moved_from: The earlier path, for a move.
    """

    path: str
    action: FileAction
    before: RevisionContent
    hash_after: str
    moved_from: str | None = None


def pack_revision(
    content: bytes, kind: Literal["content", "metadata"] = "content"
) -> RevisionContent | None:
    """
    Prepare a content for a revision; None if it is too long even when compressed.

    Only a content longer than `MAX_REVISION_BYTES` is compressed, so that a person can read the
    others with SQL.
    """
    stored, stored_kind = content, str(kind)
    if len(content) > MAX_REVISION_BYTES:
        if kind != "content" or len(content) > _MAX_COMPRESSED_FROM:
            return None
        stored, stored_kind = zlib.compress(content), _COMPRESSED
        if len(stored) > MAX_REVISION_BYTES:
            return None
    return RevisionContent(hashlib.sha256(content).hexdigest(), len(content), stored, stored_kind)


def unpack_revision(stored: bytes, kind: str, size: int, digest: str) -> bytes:
    """
    The content of a stored revision.

    Raises:
        ValueError, zlib.error: The content is damaged: its length or hash has changed.
    """
    if kind == "none":
        if stored:
            raise ValueError("a revision without a content has one")
        return b""
    content = zlib.decompress(stored) if kind == _COMPRESSED else stored
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a revision does not hold what was kept")
    return content


class Revisions(Protocol):
    """Reads revisions, by the absolute path of the file, and changes."""

    def history(self, path: str) -> list[Revision]:
        """
        The revisions of a file, newest first.

        A file that was moved to the path brings along its revisions from before the move.
        """
        ...

    def content(self, revision_id: int) -> bytes | None:
        """
        The content of a revision; None if it was removed, or is of the kind "none".

        Raises:
            ValueError, TypeError, zlib.error: The content is damaged.
        """
        ...

    def changes(self, session: str | None = None, *, limit: int) -> list[FileChange]:
        """The latest changes, newest first; with ``session`` only those of this session."""
        ...

    def kept_changes(self) -> list[KeptChange]:
        """All changes, the oldest first."""
        ...

    def kept_revisions(self) -> list[KeptRevision]:
        """All revisions without their contents, the oldest first."""
        ...

    def latest_change(self, tools: Sequence[str]) -> int:
        """
        The position of the latest change by one of these tools; 0 if there is none.

        Positions grow with each change; unlike numbers, they are never shown.
        """
        ...

    def undone(self, by: int) -> list[FileChange]:
        """The changes that a change undid, newest first."""
        ...

    def change(self, number: int) -> FileChange | None:
        """A change by its number; None if it is not kept."""
        ...


class RevisionsWriter(Revisions, Protocol):
    """Keeps revisions."""

    def begin_change(self, *, tool: str, session: str) -> int:
        """Add a change that has no files yet; returns its number, one of `new_numbers`."""
        ...

    def keep(self, change: int, step: FileStep) -> int:
        """
        Add what a change does to a file, and remove the oldest revisions that exceed the limits.

        A change that has no revision left is removed.

        Returns:
            The id of the revision.
        """
        ...

    def put_change(self, change: KeptChange) -> None:
        """
        Add a change of another database under its number, which must be free, as the latest one.
        """
        ...

    def put_revision(self, revision: KeptRevision, content: RevisionContent) -> None:
        """Add a revision of another database under its id, which must be free."""
        ...

    def forget(self, revision_id: int) -> None:
        """Remove a revision whose change of the file did not happen after all."""
        ...

    def set_undone(self, change: int, by: int) -> None:
        """Record that a change was undone by a later one."""
        ...
