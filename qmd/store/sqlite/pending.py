"""Records the temporary files of unfinished writes; those of a killed process are removed."""

from __future__ import annotations

import os
from collections.abc import Iterable

from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock


class SqlitePendingWrites:
    """`qmd.store.pending.PendingWrites` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[str]:
        rows = self._connection.execute("SELECT temporary FROM z_pending_writes").fetchall()
        for row in rows:
            require_types(row, str)
        return [path for (path,) in rows]

    def in_directory(self, directory: str) -> list[str]:
        return [path for path in self.all() if os.path.dirname(path) == directory]  # noqa: PTH120


class SqlitePendingWritesWriter(SqlitePendingWrites):
    """`qmd.store.pending.PendingWritesWriter` in SQLite."""

    def begin(self, temporary: str) -> None:
        self._connection.execute(
            "INSERT INTO z_pending_writes VALUES (?, ?)", [temporary, clock.now()]
        )

    def end(self, temporaries: Iterable[str]) -> None:
        self._connection.executemany(
            "DELETE FROM z_pending_writes WHERE temporary = ?", [(path,) for path in temporaries]
        )
