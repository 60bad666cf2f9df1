"""Reads and writes revisions, the earlier contents of files."""

from __future__ import annotations

from qmd.store.revisions import (
    MAX_REVISION_BYTES,
    MAX_REVISIONS,
    RevisionContent,
    unpack_revision,
)
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.values import Revision

_COLUMNS = "SELECT id, path, created_at, tool, kind, bytes, hash FROM revisions "


class SqliteRevisions:
    """`qmd.store.revisions.Revisions` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def history(self, path: str) -> list[Revision]:
        rows = self._connection.execute(
            _COLUMNS + "WHERE path = ? ORDER BY id DESC", [path]
        ).fetchall()
        for row in rows:
            require_types(row, int, str, str, str, str, int, str)
        return [
            Revision(revision_id, path, created, tool, kind.partition(",")[0], size, digest)
            for revision_id, path, created, tool, kind, size, digest in rows
        ]

    def content(self, revision_id: int) -> bytes | None:
        row = self._connection.execute(
            "SELECT content, kind, bytes, hash FROM revisions WHERE id = ?", [revision_id]
        ).fetchone()
        if row is None:
            return None
        require_types(row, bytes, str, int, str)
        return unpack_revision(*row)


class SqliteRevisionsWriter(SqliteRevisions):
    """`qmd.store.revisions.RevisionsWriter` in SQLite."""

    def keep(self, path: str, content: RevisionContent, *, tool: str) -> None:
        last = self._connection.execute(
            "SELECT hash, kind FROM revisions WHERE path = ? ORDER BY id DESC LIMIT 1", [path]
        ).fetchone()
        if last is not None and tuple(last) == (content.hash, content.kind):
            return
        self._connection.execute(
            "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [path, content.hash, content.size, content.stored, tool, clock.now(), content.kind],
        )
        total = 0
        rows = self._connection.execute(
            "SELECT id, length(content) FROM revisions WHERE path = ? ORDER BY id DESC", [path]
        ).fetchall()
        for position, (revision_id, size) in enumerate(rows):
            total += size
            if position >= MAX_REVISIONS or total > MAX_REVISION_BYTES:
                self._connection.execute(
                    "DELETE FROM revisions WHERE path = ? AND id <= ?", [path, revision_id]
                )
                return
