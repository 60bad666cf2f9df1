"""Which implementation opens a database."""

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
        create: Make it if there is none.
        timeout_s: Seconds to wait for a lock that another process holds.

    Raises:
        DatabaseMissingError: There is none and ``create`` is false.
        SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
        MigrationRequiredError: As their names say; it is left as it was.
    """
    return SqliteStore(path, create=create, read_only=read_only, timeout_s=timeout_s)
