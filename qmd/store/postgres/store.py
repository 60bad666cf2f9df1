"""Holds a database on a server open: one writer thread with one connection, and some readers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import DatabaseBusyError
from qmd.store import postgres
from qmd.store.postgres import library, migrate
from qmd.store.postgres.processes import ChangeFeed, PostgresEmbeddingClaims, SharedLock, is_taken
from qmd.store.postgres.vectors import LEAST_INDEXED
from qmd.store.reader import Reader, Writer
from qmd.store.sql import POSTGRES, Sql
from qmd.store.store import LOCK_TIMEOUT_S, Store
from qmd.system import cancellation
from qmd.values.location import ServerDatabase

if TYPE_CHECKING:
    from qmd.store.sql.models import StoredModel
    from qmd.values.access import AccessScope

T = TypeVar("T")

#: Connections that read at the same time; a server has 100 by default, for all its clients.
MAX_READERS = 8
_MIGRATIONS = "SELECT count(*) FROM qmd_migrations"
_SNAPSHOT = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_MIGRATIONS}"


class PostgresStore(Store):
    """
    One database on a server. Thread-safe.

    Reads run on the calling thread, each in a snapshot. Writes of all processes run one after the
    other: each transaction waits for one advisory lock, so that no two of them conflict, and
    what is read in a transaction stays true until its end.

    A lost connection fails the transaction that used it; the next use connects anew.
    """

    location: ServerDatabase

    def __init__(
        self,
        location: ServerDatabase,
        *,
        create: bool = False,
        read_only: bool = False,
        timeout_s: float = LOCK_TIMEOUT_S,
        writer_name: str | None = None,
    ) -> None:
        """
        Args:
            timeout_s: How long to wait for a lock that another process holds, and for a reader.
            writer_name: What its changes are recorded under; None for a random name.

        Raises:
            DatabaseMissingError: No such database, or no knowledge base in it and ``create`` is
                false.
            DatabaseUnreachableError, SchemaTooNewError, MigrationRequiredError, StoreError: As
                their names say; nothing was changed.
        """
        super().__init__(location, read_only=read_only, timeout_s=timeout_s, most_idle=MAX_READERS)
        self._presence: SharedLock | None = None
        self._presence_lock = threading.Lock()
        self._name = writer_name or uuid.uuid4().hex
        self._places = threading.BoundedSemaphore(MAX_READERS)
        self._migrations: int | None = None  # how many it had when its schema was last checked
        connection = library.connect(location, read_only=True)
        try:
            with self._translating():
                self._version = library.server_version(connection)
                if not migrate.check(connection, location):
                    if read_only or not (create or migrate.applied(connection)):
                        migrate.require_current(connection, location)
                    self._run(self._migrate)
        except BaseException:
            connection.close()
            self.close()
            raise
        self._idle.keep(False, connection)

    def _migrate(self) -> None:
        migrate.migrate(self._writing(), self.location)

    # -- reading -----------------------------------------------------------------------

    @contextmanager
    def reading_for(self, scope: AccessScope | None) -> Iterator[Reader]:
        """
        A reader inside one snapshot; keep it short: the server keeps old rows meanwhile.

        Raises:
            DatabaseBusyError: All connections are in use for too long.
            DatabaseUnreachableError: The connection was lost; the next call makes a new one.
            RequestEndedError: In the middle of the block, too: see `qmd.system.cancellation`.
        """
        cancellation.check()
        if not self._places.acquire(timeout=self.timeout_s):
            raise DatabaseBusyError(
                f"All {MAX_READERS} connections to {self.location} are in use.",
                hint="Try again in a moment.",
            )
        connection: library.Connection | None = None
        try:
            with self._lock:
                self._require_open()
                self._readers += 1
            try:
                with self._translating():
                    connection, migrations = self._begin_reading(scope is not None)
                    with cancellation.interruptible(connection.cancel_safe):
                        self._require_schema(connection, migrations)
                        yield self._reader(connection, scope)
                        connection.execute("COMMIT")
            finally:
                with self._lock:
                    self._readers -= 1
                if connection is not None:
                    self._give_back(connection, scope is not None)
        finally:
            self._places.release()

    def _reader(self, connection: library.Connection, scope: AccessScope | None) -> Reader:
        """A reader in the transaction that has just begun, which is restricted if need be."""
        if scope is None:
            return Reader(Sql(connection, POSTGRES))
        if not postgres.scope.restrict(connection, scope):
            if self.read_only:
                raise postgres.scope.missing_views(self.location)
            connection.execute("ROLLBACK")
            self.write(lambda writer: postgres.scope.prepare(writer.connection))
            _take_snapshot(connection)
            if not postgres.scope.restrict(connection, scope):
                raise postgres.scope.missing_views(self.location)
        return Reader(Sql(connection, POSTGRES, is_scoped=True))

    def _begin_reading(self, is_restricted: bool) -> tuple[library.Connection, int]:
        """
        A connection inside a new snapshot, and how many migrations the database has had. A
        connection that was lost while idle is replaced.

        Those whose transactions are restricted are kept apart: the server would plan its statements
        anew each time that one changes between both.
        """
        while True:
            with self._lock:
                connection: library.Connection | None = self._idle.take(is_restricted)
            is_new = connection is None
            if connection is None:
                connection = library.connect(self.location, read_only=True)
            try:
                return connection, _take_snapshot(connection)
            except library.Error:
                connection.close()
                if is_new:
                    raise

    def _give_back(self, connection: library.Connection, is_restricted: bool) -> None:
        if not library.is_lost(connection) and connection.info.transaction_status:
            # The block failed. A connection that is still busy with a statement is not kept.
            with suppress(library.Error):
                connection.execute("ROLLBACK")
        keep = not library.is_lost(connection) and not connection.info.transaction_status
        with self._lock:
            keep = keep and not self._closed
            if keep:
                keep = not self._idle.keep(is_restricted, connection)
        if not keep:
            connection.close()

    # -- writing -----------------------------------------------------------------------

    def _interrupt(self, connection: library.Connection) -> None:
        connection.cancel_safe()

    def _writing(self) -> library.Connection:
        if self._writer is None or library.is_lost(self._writer):
            self._writer = library.connect(self.location)
            self._writer.execute("SELECT set_config('qmd.writer', %s, false)", [self._name])
        return self._writer

    def _transaction(self, function: Callable[[Writer], T], patience_s: float) -> T:
        connection = self._begin_writing(patience_s)
        try:
            self._require_schema(connection, library.one(connection, _MIGRATIONS)[0])
            result = function(Writer(Sql(connection, POSTGRES)))
            connection.execute("COMMIT")
        except BaseException:
            if not library.is_lost(connection):
                with suppress(library.Error):
                    connection.execute("ROLLBACK")
            raise
        return result

    def _begin_writing(self, patience_s: float) -> library.Connection:
        """A connection whose transaction has the lock. One lost while idle is replaced."""
        is_new = self._writer is None
        connection = self._writing()
        try:
            connection.execute(f"BEGIN; SET LOCAL lock_timeout = {round(patience_s * 1000)}")
            library.lock_in_transaction(connection, "write")
        except library.Error:
            if library.is_lost(connection):
                if not is_new:
                    self._writer = None
                    return self._begin_writing(patience_s)
            else:
                connection.execute("ROLLBACK")
            raise
        return connection

    def _require_schema(self, connection: library.Connection, migrations: int) -> None:
        """
        ``migrations``: how many the database has had, in the transaction of the connection.

        Raises:
            SchemaTooNewError: A newer program has migrated the database while it was open.
        """
        if migrations != self._migrations:
            migrate.require_current(connection, self.location)
            self._migrations = migrations

    def shared_lock(self, purpose: str) -> SharedLock:
        """As `qmd.store.store.Store.shared_lock`, on a connection of its own."""
        return SharedLock(self.location, purpose)

    def is_locked(self, purpose: str) -> bool:
        """As `qmd.store.store.Store.is_locked`."""
        return self.read(lambda reader: is_taken(reader.connection, purpose))

    def change_feed(self) -> ChangeFeed:
        """As `qmd.store.store.Store.change_feed`, by notifications of the server."""
        return postgres.processes.ChangeFeed(self.location, self._name)

    def process_name(self) -> str:
        """As `qmd.store.store.Store.process_name`, by an advisory lock of this name."""
        with self._presence_lock:
            if self._presence is None:
                self._presence = self.shared_lock(f"process {self._name}")
            if not self._presence.is_in_place():  # its connection was lost
                self._presence.take()
        return self._name

    def has_process(self, name: str) -> bool:
        """As `qmd.store.store.Store.has_process`."""
        return name == self._name or self.is_locked(f"process {name}")

    def embedding_claims(self, model: StoredModel) -> PostgresEmbeddingClaims:
        """As `qmd.store.store.Store.embedding_claims`, by locks of the server."""
        return postgres.processes.PostgresEmbeddingClaims(self, model)

    # -- upkeep ------------------------------------------------------------------------

    def engine(self) -> str:
        """The server and its version."""
        return f"PostgreSQL {self._version}"

    @property
    def damage_hint(self) -> str:
        """What a person does when this database is damaged."""
        return library.DAMAGED

    def merge_full_text(self) -> None:
        """
        Count the rows for the server's planner, and note which pages all can see: searches then
        read the index of tokens alone. Autovacuum would do so a minute later.
        """
        # To count the elements of arrays of tokens takes as long as all else; no plan needs it.
        tables = (
            "z_postings, z_document_tokens (document_id, length),"
            " documents, chunks, links, tags, properties"
        )
        with self._translating(), closing(library.connect(self.location)) as connection:
            connection.execute(f"VACUUM (ANALYZE) {tables}")

    def index_vectors(self, least: int = LEAST_INDEXED) -> None:
        """As `qmd.store.store.Store.index_vectors`; ``least``: from so many vectors on."""
        lock = self.shared_lock("index of vectors")
        if not lock.take():
            return  # another process makes it
        try:
            with self._translating(), closing(library.connect(self.location)) as connection:
                postgres.vectors.build_index(connection, least)
        finally:
            lock.release()

    # -- opening and closing -----------------------------------------------------------

    def _release(self) -> None:
        if self._presence is not None:
            self._presence.release()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except library.Error as error:
            cancellation.check()  # which has cancelled the statement
            raise library.translate(error, self.location) from error


def _take_snapshot(connection: library.Connection) -> int:
    """Begin to read; returns how many migrations the database has had by then."""
    cursor = connection.execute(_SNAPSHOT)
    cursor.nextset()
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])
