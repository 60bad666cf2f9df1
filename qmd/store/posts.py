"""Stored documents as the search of posts needs them: in bulk, and as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class StoredPost(NamedTuple):
    """
    A document: ``text`` is UTF-8, for decoding what holds no hit would double a search's time.

    ``state`` is that of the file when it was indexed: bytes, time (ns), inode, device.
    """

    id: int
    path: str
    state: tuple[int, int, int, int]
    text: bytes


class Posts(Protocol):
    """Reads documents in bulk."""

    def below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        """The documents below a folder ("": all)."""
        ...

    def text(self, document_id: int) -> bytes:
        """A document's text as UTF-8."""
        ...
