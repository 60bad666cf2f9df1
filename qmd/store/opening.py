"""`open_store`: the one place that chooses the implementation of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmd.store.sqlite.library import BUSY_TIMEOUT_S
from qmd.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from qmd.store.store import Store


def open_store(
    path: Path,
    *,
    create: bool = False,
    read_only: bool = False,
    timeout_s: float = BUSY_TIMEOUT_S,
) -> Store:
    """
    Open a database.

    Args:
        path: The database file.
        create: Create it if there is none, and migrate a file of an older version.
        read_only: Refuse every write.
        timeout_s: Seconds to wait for a lock that another process holds.

    Raises:
        DatabaseMissingError: The file does not exist and ``create`` is false.
        SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
        MigrationRequiredError: As their names say. The file is not changed.
    """
    return SqliteStore(path, create=create, read_only=read_only, timeout_s=timeout_s)
