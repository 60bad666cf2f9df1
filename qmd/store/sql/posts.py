"""Stored documents in the form that the search of posts needs: many at once, as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qmd.store.sql import Sql, path_below, path_values


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


class Posts:
    """Reads many documents at once."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        """The documents below a folder; "" is the root of the collection."""
        condition, values = "true", list[object]()
        if folder:
            condition, values = path_below("path"), path_values(folder)
        rows = self._sql.stream(
            "SELECT id, path, bytes, mtime_ns, inode, device,"
            f" {self._sql.dialect.as_bytes.format('text')} FROM documents"
            f" WHERE collection_id = ? AND {condition}",
            [collection_id, *values],
            rows_at_once=100,
        )
        for document_id, path, size, mtime_ns, inode, device, text in rows:
            yield StoredPost(document_id, path, (size, mtime_ns, inode, device), text)

    def text(self, document_id: int) -> bytes:
        """A document's text as UTF-8."""
        text = self._sql.dialect.as_bytes.format("text")
        return bytes(self._sql.value(f"SELECT {text} FROM documents WHERE id = ?", [document_id]))
