"""Earlier contents of files that a tool replaced."""

from __future__ import annotations

import hashlib
import zlib
from typing import Literal, NamedTuple

from qmd.store.sqlite import clock
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.values import Revision

#: Of one file; the oldest go first.
MAX_REVISIONS = 20
MAX_BYTES = 10 * 1024 * 1024

_COLUMNS = "SELECT id, path, created_at, tool, kind, bytes, hash FROM revisions "


#: What `Revision.kind` is "content" of may be compressed, to fit.
_COMPRESSED = "content, zlib"
_MAX_COMPRESSED_FROM = 8 * MAX_BYTES


class Kept(NamedTuple):
    """What goes into a revision: the hash and size of a content, and its ``stored`` form."""

    hash: str
    size: int
    stored: bytes
    kind: str


def kept(content: bytes, kind: Literal["content", "metadata"] = "content") -> Kept | None:
    """
    A content as it can be kept; None for one that is too long, also when compressed.

    Only what is longer than `MAX_BYTES` is compressed: a person looks at the rest with SQL.
    """
    stored, stored_kind = content, str(kind)
    if len(content) > MAX_BYTES:
        if kind != "content" or len(content) > _MAX_COMPRESSED_FROM:
            return None
        stored, stored_kind = zlib.compress(content), _COMPRESSED
        if len(stored) > MAX_BYTES:
            return None
    return Kept(hashlib.sha256(content).hexdigest(), len(content), stored, stored_kind)


def keep(connection: Connection, path: str, now: Kept, *, tool: str) -> None:
    """
    Keep what a file holds now, and drop what is more than the limits allow.

    Nothing is added where the last revision holds the same.
    """
    last = connection.execute(
        "SELECT hash, kind FROM revisions WHERE path = ? ORDER BY id DESC LIMIT 1", [path]
    ).fetchone()
    if last is not None and tuple(last) == (now.hash, now.kind):
        return
    connection.execute(
        "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [path, now.hash, now.size, now.stored, tool, clock.now(), now.kind],
    )
    total = 0
    rows = connection.execute(
        "SELECT id, length(content) FROM revisions WHERE path = ? ORDER BY id DESC", [path]
    ).fetchall()
    for position, (number, size) in enumerate(rows):
        total += size
        if position >= MAX_REVISIONS or total > MAX_BYTES:
            connection.execute("DELETE FROM revisions WHERE path = ? AND id <= ?", [path, number])
            return


def history(connection: Connection, path: str) -> list[Revision]:
    """What is kept of a file, the newest first."""
    rows = connection.execute(_COLUMNS + "WHERE path = ? ORDER BY id DESC", [path]).fetchall()
    for row in rows:
        require_types(row, int, str, str, str, str, int, str)
    return [
        Revision(number, path, created, tool, kind.partition(",")[0], size, digest)
        for number, path, created, tool, kind, size, digest in rows
    ]


def content(connection: Connection, number: int) -> bytes | None:
    """
    What a revision holds; None if it is not kept any more.

    Raises:
        ValueError, TypeError, zlib.error: It is not what was kept.
    """
    row = connection.execute(
        "SELECT content, kind, bytes, hash FROM revisions WHERE id = ?", [number]
    ).fetchone()
    if row is None:
        return None
    require_types(row, bytes, str, int, str)
    return whole(*row)


def whole(stored: bytes, kind: str, size: int, digest: str) -> bytes:
    """
    The content of a row.

    Raises:
        ValueError, zlib.error: Its length or hash is another than when it was kept.
    """
    content = zlib.decompress(stored) if kind == _COMPRESSED else stored
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a revision does not hold what was kept")
    return content
