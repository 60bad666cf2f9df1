"""Earlier contents of files that a tool replaced."""

from __future__ import annotations

import hashlib
import zlib
from typing import Literal, NamedTuple, Protocol

from qmd.values import Revision

#: The most revisions of one file; the oldest are removed first.
MAX_REVISIONS = 20
#: The most bytes of all revisions of one file together.
MAX_REVISION_BYTES = 10 * 1024 * 1024

#: What `Revision.kind` calls "content" may be stored compressed, to fit.
_COMPRESSED = "content, zlib"
_MAX_COMPRESSED_FROM = 8 * MAX_REVISION_BYTES


class RevisionContent(NamedTuple):
    """
    A content in the form that a revision keeps.

    Attributes:
        hash: SHA-256 of the content, in hexadecimal.
        size: Bytes of the content.
        stored: The content, compressed if it is long.
        kind: "content", "metadata", or the kind of a compressed content.
    """

    hash: str
    size: int
    stored: bytes
    kind: str


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
    content = zlib.decompress(stored) if kind == _COMPRESSED else stored
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a revision does not hold what was kept")
    return content


class Revisions(Protocol):
    """Reads revisions, by the absolute path of the file."""

    def history(self, path: str) -> list[Revision]:
        """The revisions of a file, newest first."""
        ...

    def content(self, revision_id: int) -> bytes | None:
        """
        The content of a revision; None if the revision was removed.

        Raises:
            ValueError, TypeError, zlib.error: The content is damaged.
        """
        ...


class RevisionsWriter(Revisions, Protocol):
    """Keeps revisions."""

    def keep(self, path: str, content: RevisionContent, *, tool: str) -> None:
        """
        Add a revision with the content of a file, and remove the oldest that exceed the limits.

        Nothing is added if the last revision has the same content.
        """
        ...
