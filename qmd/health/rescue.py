"""What can still be read of a damaged database, in its place, while no one keeps that."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from qmd.errors import StoreError
from qmd.health.restore import unkept
from qmd.store import recovery
from qmd.values import Rescued


def rescue(database: Path) -> Rescued:
    """
    Replace a database by a new one with what can be read of it; the old one is kept.

    Raises:
        DatabaseMissingError: There is none.
        ConflictError: A program keeps the database or has it open.
        CorruptDatabaseError: Nothing can be read of it.
        StoreError, DiskFullError: The new one cannot be written; nothing has changed.
    """
    recovery.require_database(database)
    with unkept(database):
        try:
            with tempfile.TemporaryDirectory(prefix=".qmd-rescue-", dir=database.parent) as folder:
                new = Path(folder) / database.name
                saved = recovery.rescue_into(database, new)
                return replace(saved, kept=recovery.put_in_place(new, database))
        except OSError as error:
            raise StoreError(
                f"Nothing can be written beside {database}: {error.strerror or error}",
                hint="Check the directory, its permissions and its free space.",
            ) from error
