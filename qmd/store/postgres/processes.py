"""What processes tell each other by the server: locks, changes, and chunks that one embeds."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from psycopg import errors

from qmd.store.postgres import library
from qmd.store.store import DOCUMENTS, EmbeddingClaims
from qmd.values.location import ServerDatabase

if TYPE_CHECKING:
    from qmd.store.postgres.store import PostgresStore
    from qmd.store.sql.models import ChunkText, StoredModel, WaitingChunk


_KEY = "hashtext(current_schema() || %s)"


class _Connected:
    """Has a connection of its own, from when it is needed."""

    _connection: library.Connection | None = None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(library.Error):
                connection.close()


class SharedLock(_Connected):
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
        self._key = [library.LOCKS, f":{purpose}"]

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, as far as it is known here."""
        return self._connection is not None and not library.is_lost(self._connection)

    def take(self) -> bool:
        """
        Take the lock if it is free, without waiting.

        Raises:
            StoreError: The server cannot be reached.
        """
        if self.held:
            return True
        self.release()
        connection = library.connect(self._location)
        try:
            (granted,) = library.one(
                connection,
                f"SELECT NOT pg_is_in_recovery() AND pg_try_advisory_lock(%s, {_KEY})",
                self._key,
            )
        except library.Error as error:
            connection.close()
            raise library.translate(error, self._location) from error
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
        except library.Error:
            return False
        return True

    release = _Connected._disconnect


def is_taken(connection: library.Connection, purpose: str) -> bool:
    """Whether any session of the database has the lock now; a replica does not know."""
    try:
        row = connection.execute(
            "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted"
            f" AND l.classid = %s AND l.objid = ({_KEY}::bigint & 4294967295)",
            [library.LOCKS, f":{purpose}"],
        ).fetchone()
    except errors.InsufficientPrivilege:
        return False
    return row is not None


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


class ChangeFeed(_Connected):
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
        except library.Error as error:
            self._disconnect()
            raise library.translate(error, self._location) from error
        if changes:
            self._caught_up()
        return changes

    def _connected(self) -> library.Connection:
        if self._connection is None or library.is_lost(self._connection):
            self._disconnect()
            connection = library.connect(self._location, read_only=True)
            self._connection = connection
            connection.add_notify_handler(lambda notify: self._notice(notify.payload))
            self._schema, is_replica = library.one(
                connection, "SELECT current_schema(), pg_is_in_recovery()"
            )
            self._listens = not is_replica
            if self._listens:
                connection.execute(f"LISTEN {_CHANNEL}")
            if self._last is None:
                (self._last,) = library.one(
                    connection, "SELECT coalesce(max(id), 0) FROM z_document_changes"
                )
        return self._connection

    def _notice(self, schema: str) -> None:
        if schema == self._schema:
            self._notified = True

    def _read(self, connection: library.Connection) -> list[ChangedDocument]:
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

    def _wait(self, connection: library.Connection, timeout_s: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(timeout_s)]
        if self._woken in ready:
            with suppress(BlockingIOError):
                self._woken.recv(1024)

    def wake(self) -> None:
        """Have a `next` that waits return."""
        with suppress(OSError):  # it was closed
            self._waking.send(b"1")

    def close(self) -> None:
        self._disconnect()
        self._woken.close()
        self._waking.close()


class PostgresEmbeddingClaims(_Connected, EmbeddingClaims):
    """
    Several processes embed at the same time, each other chunks, by advisory locks.

    A process that ends, even if it is killed, claims nothing any more: others get its chunks.

    A lock is tried without waiting for it, as ``FOR UPDATE SKIP LOCKED`` does, and the server
    releases it when the connection ends. But a lock of a row would hold up whoever indexes the
    document meanwhile, for as long as the model computes. What is locked is the hash of a text, so
    that no text is embedded twice because two documents have it.
    """

    def __init__(self, store: PostgresStore, model: StoredModel) -> None:
        super().__init__(store, model)
        self._location: ServerDatabase = store.location

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        self._release()
        some_wait = False
        for outdated in (False, True):
            last: WaitingChunk | None = None
            while True:
                with self._store.reading() as reader:
                    waiting = reader.embeddings.newest_waiting(
                        self._model, DOCUMENTS, collection_ids, last, outdated=outdated
                    )
                if not waiting:
                    break
                some_wait, last = True, waiting[-1]
                claimed = self._lock(waiting, limit)
                with self._store.reading() as reader:  # now, others may have embedded some
                    chunks = reader.embeddings.waiting_among(self._model, claimed)
                if chunks:
                    return chunks
        return [] if some_wait else None

    def _lock(self, waiting: Sequence[WaitingChunk], limit: int) -> list[int]:
        """Lock the texts of so many chunks that nobody has locked; returns the chunks' ids."""
        try:
            if self._connection is None:
                self._connection = library.connect(self._location)
            # Materialized, so that no row is tried beyond the limit.
            rows = self._connection.execute(
                "WITH waiting AS MATERIALIZED (SELECT * FROM unnest(%s::bigint[], %s::text[])"
                " AS w (id, hash)) SELECT id FROM waiting"
                " WHERE pg_try_advisory_lock(%s, hashtext(current_schema() || hash)) LIMIT %s",
                [
                    [chunk.id for chunk in waiting],
                    [chunk.hash.hex() for chunk in waiting],
                    library.CLAIMS,
                    limit,
                ],
            ).fetchall()
        except library.Error as error:
            self.close()
            raise library.translate(error, self._location) from error
        return [chunk_id for (chunk_id,) in rows]

    def _release(self) -> None:
        if self._connection is not None and library.is_lost(self._connection):
            self.close()
        if self._connection is not None:
            try:
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            except library.Error:  # the server has released them at the end of the connection
                self.close()

    close = _Connected._disconnect
