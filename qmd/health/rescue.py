"""What can still be read of a damaged database, in its place, while no one keeps that."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from qmd.errors import StoreError
from qmd.health.restore import unkept
from qmd.store.sqlite import copies
from qmd.store.sqlite import rescue as store_rescue
from qmd.store.sqlite.library import connect, missing_database
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
    if not database.is_file():
        raise missing_database(database)
    with unkept(database):
        try:
            with tempfile.TemporaryDirectory(prefix=".qmd-rescue-", dir=database.parent) as folder:
                new = Path(folder) / database.name
                saved = store_rescue.save(database, new)
                source = connect(new, read_only=True)
                try:
                    return replace(saved, kept=copies.put_in_place(source, database))
                finally:
                    source.close()
        except OSError as error:
            raise StoreError(
                f"Nothing can be written beside {database}: {error.strerror or error}",
                hint="Check the directory, its permissions and its free space.",
            ) from error
