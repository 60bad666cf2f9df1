"""Stored documents as the search of posts needs them: in bulk, and as UTF-8."""

from __future__ import annotations

from typing import NamedTuple

from qmd.sqlite import Connection
from qmd.store.documents import path_below
from qmd.store.files import FileState


class StoredPost(NamedTuple):
    """A document, and the state of the file that its text is of."""

    id: int
    state: FileState


def below(connection: Connection, collection_id: int, prefix: str) -> dict[str, StoredPost]:
    """The documents below a folder ("": all), by their paths from there."""
    condition, values = "1", list[object]()
    if prefix:
        condition, values = path_below("path"), [prefix, f"{prefix}/", f"{prefix}0"]
    rows = connection.execute(
        "SELECT path, id, bytes, mtime_ns, inode, device FROM documents"
        f" WHERE collection_id = ? AND {condition}",
        [collection_id, *values],
    )
    skip = len(prefix) + 1 if prefix else 0
    return {path[skip:]: StoredPost(number, FileState(*state)) for path, number, *state in rows}


def text(connection: Connection, number: int) -> bytes:
    """A document's text as UTF-8: decoding what holds no hit would double a search's time."""
    row = connection.execute(
        "SELECT CAST(text AS BLOB) FROM documents WHERE id = ?", [number]
    ).fetchone()
    return bytes(row[0])
