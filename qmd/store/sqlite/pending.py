"""The temporary files of writes that are under way: what a killed process left is found here."""

from __future__ import annotations

import os
from collections.abc import Iterable

from qmd.store.sqlite import clock
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types


def begin(connection: Connection, temporary: str) -> None:
    """A temporary file is about to be made there (an absolute path)."""
    connection.execute("INSERT INTO pending_writes VALUES (?, ?)", [temporary, clock.now()])


def end(connection: Connection, temporaries: Iterable[str]) -> None:
    """They are gone, or in their place."""
    connection.executemany(
        "DELETE FROM pending_writes WHERE temporary = ?", [(path,) for path in temporaries]
    )


def everywhere(connection: Connection) -> list[str]:
    """Those that were begun and not ended."""
    rows = connection.execute("SELECT temporary FROM pending_writes").fetchall()
    for row in rows:
        require_types(row, str)
    return [path for (path,) in rows]


def inside(connection: Connection, directory: str) -> list[str]:
    """Those of them that lie directly in a directory."""
    return [path for path in everywhere(connection) if os.path.dirname(path) == directory]  # noqa: PTH120
