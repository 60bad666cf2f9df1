"""Earlier contents of files that a tool replaced."""

from __future__ import annotations

import hashlib
import zlib
from typing import Literal, NamedTuple, Protocol

from qmd.values import Revision

#: Of one file; the oldest go first.
MAX_REVISIONS = 20
#: Of one file, all revisions together.
MAX_REVISION_BYTES = 10 * 1024 * 1024

#: What `Revision.kind` calls "content" may be stored compressed, to fit.
_COMPRESSED = "content, zlib"
_MAX_COMPRESSED_FROM = 8 * MAX_REVISION_BYTES


class RevisionContent(NamedTuple):
    """What goes into a revision: the hash and size of a content, and its ``stored`` form."""

    hash: str
    size: int
    stored: bytes
    kind: str


def pack_revision(
    content: bytes, kind: Literal["content", "metadata"] = "content"
) -> RevisionContent | None:
    """
    A content as it can be kept; None for one that is too long, also when compressed.

    Only what is longer than `MAX_REVISION_BYTES` is compressed: a person looks at the rest
    with SQL.
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
        ValueError, zlib.error: Its length or hash is another than when it was kept.
    """
    content = zlib.decompress(stored) if kind == _COMPRESSED else stored
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a revision does not hold what was kept")
    return content


class Revisions(Protocol):
    """Reads revisions, by the absolute path of the file."""

    def history(self, path: str) -> list[Revision]:
        """What is kept of a file, the newest first."""
        ...

    def content(self, revision_id: int) -> bytes | None:
        """
        What a revision holds; None if it is not kept any more.

        Raises:
            ValueError, TypeError, zlib.error: It is not what was kept.
        """
        ...


class RevisionsWriter(Revisions, Protocol):
    """Keeps revisions."""

    def keep(self, path: str, content: RevisionContent, *, tool: str) -> None:
        """
        Keep what a file holds now, and drop what is more than the limits allow.

        Nothing is added where the last revision holds the same.
        """
        ...
