"""Replaces a database by a backup, or by the part of it that can still be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from qmd import store
from qmd.errors import ConflictError, DatabaseMissingError, NotADatabaseError, StoreError
from qmd.ingest.keep.freshness import IndexLock
from qmd.system.temporary import temporary_beside
from qmd.values import Rescued

_BACKUP_HINT = "Give a file that 'qmd db backup' made."


def restore(database: Path, backup: Path) -> Path | None:
    """
    Replace a database by a backup of it. The old database is kept under another name.

    Returns:
        The path of the old database; None if there was none.

    Raises:
        DatabaseMissingError: The backup does not exist.
        ConflictError: A program has the database open.
        StoreError: The file is not a backup, is damaged, or was written by a newer program. Nothing
            was changed.
    """
    if not backup.is_file():
        raise DatabaseMissingError(f"There is no file {backup}.", hint=_BACKUP_HINT)
    if backup.exists() and database.exists() and backup.samefile(database):
        raise ConflictError(f"{backup} is the database itself.", hint=_BACKUP_HINT)
    with store.copies.left_alone(backup):
        try:
            store.copies.check_backup(backup)
        except NotADatabaseError as error:
            raise NotADatabaseError(str(error), hint=_BACKUP_HINT) from error
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with index_locked(database):
            return store.copies.put_in_place(backup, database)


def backup_older(database: Path, target: Path, *, replace: bool) -> int:
    """As `store.copies.copy_older`."""
    return store.copies.copy_older(database, target, replace=replace)


def rescue(database: Path) -> Rescued:
    """
    Replace a damaged database by a new one that holds the part of it that can be read.

    The damaged database is kept under another name.

    Raises:
        DatabaseMissingError: The database does not exist.
        ConflictError: A program has the database open.
        CorruptDatabaseError: Nothing can be read of the database.
        StoreError, DiskFullError: The new database cannot be written; nothing was changed.
    """
    store.copies.require_database(database)
    with index_locked(database):
        try:
            with _folder_beside(database) as folder:
                new = folder / database.name
                saved = store.rescue.save(database, new)
                return replace(saved, kept=store.copies.put_in_place(new, database))
        except OSError as error:
            raise StoreError(
                f"Nothing can be written beside {database}: {error.strerror or error}",
                hint="Check the directory, its permissions and its free space.",
            ) from error


@contextmanager
def _folder_beside(database: Path) -> Iterator[Path]:
    folder = temporary_beside(database.with_name(f"{database.name}.rescue"))
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def index_locked(database: Path) -> Iterator[None]:
    """Hold the lock of a database, so that no process indexes it. Raises ConflictError."""
    lock = IndexLock(database)
    if not lock.take():
        raise ConflictError(
            f"Another process keeps the database {database}.",
            hint="End servers, 'qmd watch' and MCP clients that use it, then try again.",
        )
    try:
        yield
    finally:
        lock.release()
