"""A backup put in the place of a database, while no one keeps that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd.errors import ConflictError
from qmd.ingest.leader import Leadership
from qmd.sqlite import connect
from qmd.store import copies


def restore(database: Path, backup: Path) -> Path | None:
    """
    Replace a database by a backup of it.

    Returns:
        Where the old database is kept, None if there was none.

    Raises:
        ConflictError: A program keeps the database or has it open.
        StoreError: The backup is not one, is damaged, or was written by a newer program;
            nothing has changed.
    """
    if backup.exists() and database.exists() and backup.samefile(database):
        raise ConflictError(
            f"{backup} is the database itself.", hint="Give a file that 'qmd backup' made."
        )
    source = connect(backup, read_only=True)
    try:
        copies.check(source, backup)
        database.parent.mkdir(parents=True, exist_ok=True)
        with unkept(database):
            return copies.put_in_place(source, database)
    finally:
        source.close()


@contextmanager
def unkept(database: Path) -> Iterator[None]:
    """No other process keeps the database meanwhile. Raises ConflictError: One does."""
    leadership = Leadership(database)
    if not leadership.take():
        raise ConflictError(
            f"Another process keeps the database {database}.",
            hint="End servers, 'qmd watch' and MCP clients that use it, then try again.",
        )
    try:
        yield
    finally:
        leadership.release()
