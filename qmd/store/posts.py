"""Stored documents in the form that the search of posts needs: many at once, as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class StoredPost(NamedTuple):
    """
    A document with its text.

    Attributes:
        path: Relative to the collection.
        state: The file when it was indexed: size in bytes, mtime in ns, inode, device.
        text: UTF-8. Decoding the texts without a hit would double the time of a search.
    """

    id: int
    path: str
    state: tuple[int, int, int, int]
    text: bytes


class Posts(Protocol):
    """Reads many documents at once."""

    def below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        """The documents below a folder; "" is the root of the collection."""
        ...

    def text(self, document_id: int) -> bytes:
        """A document's text as UTF-8."""
        ...
