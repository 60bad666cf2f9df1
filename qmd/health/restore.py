"""A backup put in the place of a database, while no one keeps that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd.errors import ConflictError, DatabaseMissingError, NotADatabaseError
from qmd.ingest.keep.lock import IndexLock
from qmd.store import recovery

_BACKUP_HINT = "Give a file that 'qmd backup' made."


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
    if not backup.is_file():
        raise DatabaseMissingError(f"There is no file {backup}.", hint=_BACKUP_HINT)
    if backup.exists() and database.exists() and backup.samefile(database):
        raise ConflictError(f"{backup} is the database itself.", hint=_BACKUP_HINT)
    try:
        recovery.check_backup(backup)
    except NotADatabaseError as error:
        raise NotADatabaseError(str(error), hint=_BACKUP_HINT) from error
    database.parent.mkdir(parents=True, exist_ok=True)
    with unkept(database):
        return recovery.put_in_place(backup, database)


@contextmanager
def unkept(database: Path) -> Iterator[None]:
    """No other process keeps the database meanwhile. Raises ConflictError: One does."""
    leadership = IndexLock(database)
    if not leadership.take():
        raise ConflictError(
            f"Another process keeps the database {database}.",
            hint="End servers, 'qmd watch' and MCP clients that use it, then try again.",
        )
    try:
        yield
    finally:
        leadership.release()
