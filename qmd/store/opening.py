"""`open_store`: the one place that chooses the implementation of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qmd.errors import ConfigError
from qmd.store.store import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from qmd.store.store import Store
    from qmd.values.location import DatabaseLocation


def open_store(
    location: DatabaseLocation,
    replica: DatabaseLocation | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    timeout_s: float = LOCK_TIMEOUT_S,
    progress: Callable[[int, int, str], object] | None = None,
) -> Store:
    """
    Open a database.

    Args:
        location: The database file, or the database on a server.
        replica: A streaming replica of the database, which answers reads; None without one.
        create: Create it if there is none (on a server: the tables), and migrate one of an older
            version.
        read_only: Refuse every write.
        timeout_s: Seconds to wait for a lock that another process holds.
        progress: Called before each migration of an older file with the number of those done, of
            all, and its name.

    Raises:
        ConfigError: ``replica`` is no replica of the database.
        DatabaseMissingError: It does not exist and ``create`` is false.
        DatabaseUnreachableError: The server cannot be reached.
        SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
        MigrationRequiredError: As their names say. The database is not changed.
    """
    if isinstance(location, Path):
        if replica is not None:
            raise _no_replica(location)
        from qmd.store.sqlite.store import SqliteStore

        return SqliteStore(
            location,
            create=create,
            read_only=read_only,
            timeout_s=timeout_s,
            progress=progress,
        )
    if isinstance(replica, Path):
        raise _no_replica(replica)
    if replica is not None:
        from qmd.store.postgres.replicated import ReplicatedStore

        store = ReplicatedStore(
            location, replica, create=create, read_only=read_only, timeout_s=timeout_s
        )
        return cast("Store", store)
    from qmd.store.postgres.store import PostgresStore

    return PostgresStore(location, create=create, read_only=read_only, timeout_s=timeout_s)


def _no_replica(file: Path) -> ConfigError:
    return ConfigError(
        f"{file} is a file: only databases on a server have replicas.",
        hint="Leave out --db-read, or give the URLs of both servers: postgresql://…",
    )
