"""
Records the temporary files of unfinished writes; those of a killed process are removed.

Each record names its machine. Records of other machines count only where their files are here,
too, as on a volume that machines share: else their files would be taken for files that are gone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from qmd.store.postgres.library import Connection
from qmd.system import clock


class PostgresPendingWrites:
    """`qmd.store.pending.PendingWrites` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[str]:
        rows = self._connection.execute(
            "SELECT temporary, machine FROM z_pending_writes"
        ).fetchall()
        here = socket.gethostname()
        return [path for path, machine in rows if machine == here or os.path.lexists(path)]

    def in_directory(self, directory: str) -> list[str]:
        return [path for path in self.all() if os.path.dirname(path) == directory]  # noqa: PTH120


class PostgresPendingWritesWriter(PostgresPendingWrites):
    """`qmd.store.pending.PendingWritesWriter` in PostgreSQL."""

    def begin(self, temporary: str) -> None:
        self._connection.execute(
            "INSERT INTO z_pending_writes (temporary, created_at, machine) VALUES (%s, %s, %s)",
            [temporary, clock.now(), socket.gethostname()],
        )

    def end(self, temporaries: Iterable[str]) -> None:
        self._connection.execute(
            "DELETE FROM z_pending_writes WHERE temporary = ANY(%s)", [list(temporaries)]
        )
