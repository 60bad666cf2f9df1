"""Puts a backup in the place of a database, and saves what is readable of a damaged one."""

from __future__ import annotations

from pathlib import Path

from qmd.store.sqlite import copies
from qmd.store.sqlite import rescue as sqlite_rescue
from qmd.store.sqlite.library import connect, missing_database
from qmd.values import Rescued


def require_database(path: Path) -> None:
    """Raises DatabaseMissingError: There is no file."""
    if not path.is_file():
        raise missing_database(path)


def check_backup(path: Path) -> None:
    """
    Whether a file is a sound database that this program can read.

    Raises:
        NotADatabaseError, SchemaTooNewError, StoreError: It is not.
        CorruptDatabaseError: It is damaged.
    """
    backup = connect(path, read_only=True)
    try:
        copies.check(backup, path)
    finally:
        backup.close()


def put_in_place(source: Path, database: Path) -> Path | None:
    """
    Let a copy of ``source`` be the database; what was there is kept.

    Returns:
        Where the old database is now, None if there was none.

    Raises:
        ConflictError: A program has the database open.
        StoreError, DiskFullError: The copy cannot be made; nothing has changed.
    """
    connection = connect(source, read_only=True)
    try:
        return copies.put_in_place(connection, database)
    finally:
        connection.close()


def rescue_into(damaged: Path, new: Path) -> Rescued:
    """
    Make ``new`` a database with the collections, contexts, revisions and vectors of ``damaged``.

    Rows that cannot be read, or do not hold what was stored, are left out and counted. Documents
    are not taken over: the files have them.

    Raises:
        CorruptDatabaseError: Nothing can be read.
        StoreError, DiskFullError: The new one cannot be written.
    """
    return sqlite_rescue.save(damaged, new)
