"""Locks that belong to a session of the server: its end releases them, also if it is killed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from psycopg import errors

from qmd.store.postgres.library import LOCKS, Connection, Error, connect, is_lost, one, translate
from qmd.values.location import ServerDatabase

_KEY = "hashtext(current_schema() || %s)"


class SharedLock:
    """
    A lock that one of all processes with a database holds, on whichever machine.

    It is an advisory lock on a connection of its own.
    Only the primary server grants it: a replica would grant one that the primary does not know.
    """

    def __init__(
        self, location: ServerDatabase, purpose: str, taken: Callable[[], object] = lambda: None
    ) -> None:
        """``taken``: called each time that the lock was free and is held now."""
        self._location = location
        self._taken = taken
        self._key = [LOCKS, f":{purpose}"]
        self._connection: Connection | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, as far as it is known here."""
        return self._connection is not None and not is_lost(self._connection)

    def take(self) -> bool:
        """
        Take the lock if it is free, without waiting.

        Raises:
            StoreError: The server cannot be reached.
        """
        if self.held:
            return True
        self.release()
        connection = connect(self._location)
        try:
            (granted,) = one(
                connection,
                f"SELECT NOT pg_is_in_recovery() AND pg_try_advisory_lock(%s, {_KEY})",
                self._key,
            )
        except Error as error:
            connection.close()
            raise translate(error, self._location) from error
        if granted:
            self._connection = connection
            self._taken()
        else:
            connection.close()
        return bool(granted)

    def is_in_place(self) -> bool:
        """Whether the session that has the lock still answers."""
        if self._connection is None:
            return False
        try:
            self._connection.execute("SELECT 1")
        except Error:
            return False
        return True

    def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Error):
                connection.close()


def is_taken(connection: Connection, purpose: str) -> bool:
    """Whether any session of the database has the lock now; a replica does not know."""
    try:
        row = connection.execute(
            "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted"
            f" AND l.classid = %s AND l.objid = ({_KEY}::bigint & 4294967295)",
            [LOCKS, f":{purpose}"],
        ).fetchone()
    except errors.InsufficientPrivilege:
        return False
    return row is not None
