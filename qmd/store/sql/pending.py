"""
The temporary files of unfinished writes.

A killed process leaves its temporary files behind; their records tell the next process where. On a
server each record names its machine. Records of other machines count only where their files are
here, too, as on a volume that machines share: else their files would be taken for files that are
gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from qmd import libraries
from qmd.store.sql import Sql
from qmd.system import clock


class PendingWrites:
    """Reads the absolute paths of the temporary files of unfinished writes."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def all(self) -> list[str]:
        """All temporary files."""
        columns = "temporary, machine" if self._sql.dialect.is_shared else "temporary, ''"
        here = self._machine()
        return [
            path
            for path, machine in self._sql.rows(
                (str, str), f"SELECT {columns} FROM z_pending_writes"
            )
            if machine == here or os.path.lexists(path)
        ]

    def _machine(self) -> str:
        """This one; "" where a database has one machine."""
        if not self._sql.dialect.is_shared:
            return ""
        return libraries.socket.gethostname()

    def in_directory(self, directory: str) -> list[str]:
        """The temporary files directly in a directory, an absolute path."""
        return [path for path in self.all() if os.path.dirname(path) == directory]  # noqa: PTH120


class PendingWritesWriter(PendingWrites):
    """Records the begin and the end of writes."""

    def begin(self, temporary: str) -> None:
        """Record that a temporary file will be made at this absolute path."""
        record = {"temporary": temporary, "created_at": clock.now()}
        if machine := self._machine():
            record["machine"] = machine
        marks = ", ".join("?" * len(record))
        self._sql.run(
            f"INSERT INTO z_pending_writes ({', '.join(record)}) VALUES ({marks})",
            list(record.values()),
        )

    def end(self, temporaries: Iterable[str]) -> None:
        """Remove the records of temporary files that were removed or have replaced their file."""
        self._sql.many(
            "DELETE FROM z_pending_writes WHERE temporary = ?", [(path,) for path in temporaries]
        )
