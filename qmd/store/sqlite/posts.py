"""Stored documents as the search of posts needs them: in bulk, and as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qmd.store.sqlite.documents import path_below
from qmd.store.sqlite.library import Connection


class StoredPost(NamedTuple):
    """
    A document: ``text`` is UTF-8, for decoding what holds no hit would double a search's time.

    ``state`` is that of the file when it was indexed: bytes, time (ns), inode, device.
    """

    id: int
    path: str
    state: tuple[int, int, int, int]
    text: bytes


def below(connection: Connection, collection_id: int, folder: str) -> Iterator[StoredPost]:
    """The documents below a folder ("": all)."""
    condition, values = "1", list[object]()
    if folder:
        condition, values = path_below("path"), [folder, f"{folder}/", f"{folder}0"]
    rows = connection.execute(
        "SELECT id, path, bytes, mtime_ns, inode, device, CAST(text AS BLOB) FROM documents"
        f" WHERE collection_id = ? AND {condition}",
        [collection_id, *values],
    )
    for number, path, size, mtime_ns, inode, device, text in rows:
        yield StoredPost(number, path, (size, mtime_ns, inode, device), text)


def text(connection: Connection, number: int) -> bytes:
    """A document's text as UTF-8."""
    row = connection.execute(
        "SELECT CAST(text AS BLOB) FROM documents WHERE id = ?", [number]
    ).fetchone()
    return bytes(row[0])
