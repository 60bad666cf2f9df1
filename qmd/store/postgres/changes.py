"""The changes of documents that other processes commit, told by LISTEN and NOTIFY."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

from qmd.store.postgres.library import Connection, Error, connect, is_lost, one, translate
from qmd.values.location import ServerDatabase

_CHANNEL = "qmd_changes"
_MOST_ROWS = 5_000
#: How often a replica is asked: it refuses LISTEN.
_REPLICA_S = 1.0
#: How often rows are looked for although nothing was told, in case a notification is lost.
_LOOK_S = 10.0


class ChangedDocument(NamedTuple):
    """A committed change. ``previous`` is the old path of a document moved in its collection."""

    kind: Literal["added", "updated", "moved", "removed"]
    collection: str
    path: str
    previous: str | None = None


class ChangeFeed:
    """
    The changes that other processes commit from its first use on, each once.

    It is for one thread, and has a connection of its own; only `wake` may be called from others.

    Triggers add a row to ``z_document_changes`` for each change, whichever program makes it, and
    notify at the commit. A notification only says that there are rows, so that a listener whose
    connection was lost reads what it has missed; of more than 100,000 changes, the latest ones.
    """

    def __init__(
        self,
        location: ServerDatabase,
        writer: str,
        caught_up: Callable[[], object] = lambda: None,
    ) -> None:
        """
        ``writer``: the setting ``qmd.writer`` of the connections whose changes are left out.
        ``caught_up``: called before changes are returned.
        """
        self._location = location
        self._caught_up = caught_up
        self._writer = writer
        self._connection: Connection | None = None
        self._listens = False
        self._schema = ""
        self._last: int | None = None
        self._notified = False
        self._woken, self._waking = socket.socketpair()
        self._woken.setblocking(False)

    def next(self, timeout_s: float) -> list[ChangedDocument]:
        """
        The changes since the last call, in the order of their commits; at most some thousand.

        It waits for the first one for up to ``timeout_s``, and returns none then.

        Raises:
            StoreError: The server cannot be reached. The next call connects anew, and misses none
                of the changes meanwhile unless they are very many.
        """
        try:
            connection = self._connected()
            changes = self._read(connection)
            if not changes and not self._notified:
                self._wait(connection, min(timeout_s, _LOOK_S if self._listens else _REPLICA_S))
                # It receives the notification, too, so the next call reads once in vain.
                changes = self._read(connection)
        except Error as error:
            self._forget()
            raise translate(error, self._location) from error
        if changes:
            self._caught_up()
        return changes

    def _connected(self) -> Connection:
        if self._connection is None or is_lost(self._connection):
            self._forget()
            connection = connect(self._location, read_only=True)
            self._connection = connection
            connection.add_notify_handler(lambda notify: self._notice(notify.payload))
            self._schema, is_replica = one(
                connection, "SELECT current_schema(), pg_is_in_recovery()"
            )
            self._listens = not is_replica
            if self._listens:
                connection.execute(f"LISTEN {_CHANNEL}")
            if self._last is None:
                (self._last,) = one(
                    connection, "SELECT coalesce(max(id), 0) FROM z_document_changes"
                )
        return self._connection

    def _notice(self, schema: str) -> None:
        if schema == self._schema:
            self._notified = True

    def _read(self, connection: Connection) -> list[ChangedDocument]:
        """A notification that comes while this reads is for the next call."""
        self._notified = False
        rows = connection.execute(
            "SELECT id, writer, kind, collection, path, previous FROM z_document_changes"
            " WHERE id > %s ORDER BY id LIMIT %s",
            [self._last, _MOST_ROWS],
        ).fetchall()
        if rows:
            self._last = rows[-1][0]
        if len(rows) == _MOST_ROWS:
            self._notified = True
        return [ChangedDocument(*row[2:]) for row in rows if row[1] != self._writer]

    def _wait(self, connection: Connection, timeout_s: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(timeout_s)]
        if self._woken in ready:
            with suppress(BlockingIOError):
                self._woken.recv(1024)

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Error):
                connection.close()

    def wake(self) -> None:
        """Have a `next` that waits return."""
        with suppress(OSError):  # it was closed
            self._waking.send(b"1")

    def close(self) -> None:
        self._forget()
        self._woken.close()
        self._waking.close()
