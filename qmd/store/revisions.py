"""Earlier contents of files, and the temporary files of writes that are under way."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from qmd.model import Revision
from qmd.sqlite import Connection
from qmd.store import clock

#: Of one file; the oldest go first.
MAX_REVISIONS = 20
MAX_BYTES = 10 * 1024 * 1024

_COLUMNS = "SELECT id, path, created_at, tool, kind, bytes, hash FROM revisions "


def _revision(row: Sequence[Any]) -> Revision:
    return Revision(*row)


def keep(
    connection: Connection,
    path: str,
    content: bytes,
    *,
    tool: str,
    kind: Literal["content", "metadata"] = "content",
) -> None:
    """
    Keep what a file holds now, and drop what is more than the limits allow.

    Nothing is added where the last revision holds the same. ``content`` must not be longer
    than `MAX_BYTES`.
    """
    assert len(content) <= MAX_BYTES
    digest = hashlib.sha256(content).hexdigest()
    last = connection.execute(
        "SELECT hash, kind FROM revisions WHERE path = ? ORDER BY id DESC LIMIT 1", [path]
    ).fetchone()
    if last is not None and tuple(last) == (digest, kind):
        return
    connection.execute(
        "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [path, digest, len(content), content, tool, clock.now(), kind],
    )
    total = 0
    rows = connection.execute(
        "SELECT id, bytes FROM revisions WHERE path = ? ORDER BY id DESC", [path]
    ).fetchall()
    for position, (number, size) in enumerate(rows):
        total += size
        if position >= MAX_REVISIONS or total > MAX_BYTES:
            connection.execute("DELETE FROM revisions WHERE path = ? AND id <= ?", [path, number])
            return


def history(connection: Connection, path: str) -> list[Revision]:
    """What is kept of a file, the newest first."""
    rows = connection.execute(_COLUMNS + "WHERE path = ? ORDER BY id DESC", [path])
    return [_revision(row) for row in rows]


def content(connection: Connection, number: int) -> bytes | None:
    """What a revision holds; None if it is not kept any more."""
    row = connection.execute("SELECT content FROM revisions WHERE id = ?", [number]).fetchone()
    return None if row is None else bytes(row[0])
