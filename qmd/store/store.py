"""An open database, of either engine, and `open_store`, which opens one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from qmd import libraries, store
from qmd.errors import ConfigError, ReadOnlyError, StoreError
from qmd.records import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from qmd.store.postgres.processes import ChangeFeed, SharedLock
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql import Connection
    from qmd.store.sql.models import ChunkText, StoredModel
    from qmd.values.access import AccessScope
    from qmd.values.location import DatabaseLocation


T = TypeVar("T")

#: Seconds that a write waits for a lock that another process holds, unless told otherwise.
LOCK_TIMEOUT_S = 15.0
#: After Ctrl-C a write has this many seconds to finish.
INTERRUPTED_S = 1.0
#: How long a write that may be dropped waits for another process.
PATIENCE_S = 0.1
#: Of so many scopes connections wait for readers.
IDLE_SCOPES = 16


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
        return store.sqlite.store.SqliteStore(
            location,
            create=create,
            read_only=read_only,
            timeout_s=timeout_s,
            progress=progress,
        )
    if isinstance(replica, Path):
        raise _no_replica(replica)
    if replica is not None:
        replicated = store.postgres.replicated.ReplicatedStore(
            location, replica, create=create, read_only=read_only, timeout_s=timeout_s
        )
        return cast("Store", replicated)
    return store.postgres.store.PostgresStore(
        location, create=create, read_only=read_only, timeout_s=timeout_s
    )


def _no_replica(file: Path) -> ConfigError:
    return ConfigError(
        f"{file} is a file: only databases on a server have replicas.",
        hint="Leave out --db-read, or give the URLs of both servers: postgresql://…",
    )


class ReplicaState(NamedTuple):
    """
    The replica that answers reads.

    Attributes:
        lag_s: Seconds that it is behind; None if that is unknown.
        problem: A sentence that says why the primary server answers; None if the replica does.
        primary_problem: A sentence that says why nothing can be written.
    """

    lag_s: float | None
    problem: str | None = None
    primary_problem: str | None = None


class _IdleReaders:
    """
    Connections that wait, by what they are restricted to; None for no restriction.

    Not thread-safe: callers hold a lock.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_scope: dict[object, list[Connection]] = {}

    def take(self, scope: object) -> Connection | None:
        """A connection of the scope; None if none waits."""
        idle = self._by_scope.get(scope)
        return idle.pop() if idle else None

    def keep(self, scope: object, connection: Connection) -> list[Connection]:
        """
        Keep a connection for the next reader of its scope.

        Returns:
            Connections to close: this one, or those of the scope that was used least recently.
        """
        idle = self._by_scope.pop(scope, [])
        self._by_scope[scope] = idle  # the scope that was used last comes last
        if len(idle) >= self._most:
            return [connection]
        idle.append(connection)
        if len(self._by_scope) > IDLE_SCOPES:
            oldest = next(each for each in self._by_scope if each is not None)
            return self._by_scope.pop(oldest)
        return []

    def take_all(self) -> list[Connection]:
        connections = [connection for idle in self._by_scope.values() for connection in idle]
        self._by_scope = {}
        return connections


class Store(ABC):
    """
    One open database. Thread-safe.

    Reads run on the calling thread; writes run one after the other on a thread of the store, with
    one connection that is kept.

    A store stays with the database file that it was opened with. While that file is not at its
    path, every use raises DatabaseReplacedError. For another file at the path, open another store.

    Attributes:
        location: The absolute path of the database file, or the database on a server.
        read_only: Whether every write is refused.
        timeout_s: Seconds that a write waits for a lock that another process holds.
    """

    def __init__(
        self, location: DatabaseLocation, *, read_only: bool, timeout_s: float, most_idle: int
    ) -> None:
        self.location = location
        self.read_only = read_only
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._closed = False
        self._abandoned = False
        self._readers = 0
        self._idle = _IdleReaders(most_idle)
        self._writer: Connection | None = None
        self._thread: ThreadPoolExecutor | None = None

    # -- reading -----------------------------------------------------------------------

    @abstractmethod
    def reading_for(self, scope: AccessScope | None) -> AbstractContextManager[Reader]:
        """As `reading`, with the rows of a scope alone; None for no restriction."""

    def reading(self) -> AbstractContextManager[Reader]:
        """
        A reader inside one snapshot. Keep the block short: old data cannot be removed meanwhile.

        Raises:
            DatabaseReplacedError: The database is not at its path any more.
            RequestEndedError: The request was cancelled, possibly in the middle of the block; see
                `qmd.system.cancellation`.
        """
        return self.reading_for(None)

    def read(self, function: Callable[[Reader], T]) -> T:
        """What a function makes of one snapshot; the errors are those of `reading` and its own."""
        with self.reading() as reader:
            return function(reader)

    def scoped(self, scope: AccessScope) -> Store:
        """
        This store as a client with a scope sees it: nothing outside its collections exists.

        It reads what is in the scope, and writes nothing but the client's own conversations: each
        other use of its `Writer` raises ScopeError. It needs no closing, and lives as long as this
        store.
        """
        return store.scoped.scoped_store(self, scope, self.reading_for)

    @abstractmethod
    def engine(self) -> str:
        """The name and version of the library that stores the data."""

    @property
    @abstractmethod
    def damage_hint(self) -> str:
        """A sentence that tells a person what to do if this database is damaged."""

    def replica_state(self) -> ReplicaState | None:
        """How far the replica is behind that answers reads; None without a replica."""
        return None

    # -- writing -----------------------------------------------------------------------

    @abstractmethod
    def _transaction(self, function: Callable[[Writer], T], patience_s: float) -> T:
        """Run ``function(writer)`` in a transaction; waits so long for one of another process."""

    @abstractmethod
    def _translating(self) -> AbstractContextManager[None]:
        """Raises what a library raises as a `QmdError`."""

    def write(self, function: Callable[[Writer], T]) -> T:
        """
        Run ``function(writer)`` in one transaction, and wait for it.

        Raises:
            ReadOnlyError, DatabaseBusyError, DiskFullError: The transaction was rolled back.
            DatabaseReplacedError: The database is not at its path any more; nothing was written.
        """
        return self._run(lambda: self._transaction(function, self.timeout_s))

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """
        Queue a write that may be lost, and return at once.

        The write is dropped if the database is read-only or closed, if another process holds the
        lock for more than a moment, or if the disk is full.

        Args:
            written: Called after the commit.
        """

        def run() -> None:
            try:
                with self._translating():
                    self._transaction(function, PATIENCE_S)
                    written()
            except StoreError as error:
                libraries.logging.getLogger(__name__).debug("a write was dropped: %s", error)

        try:
            self._submit(run)
        except StoreError:
            return

    def require_writable(self) -> None:
        """Raises ReadOnlyError."""
        if self.read_only:
            raise ReadOnlyError(
                "The database was opened read-only.", hint="Open it without read_only."
            )

    def _run(self, job: Callable[[], T]) -> T:
        """Wait for a job of the writer's thread. Ctrl-C ends it, at whatever moment it comes."""
        # Made before its job can begin, so that Ctrl-C always finds it.
        future: Future[T] = libraries.futures.Future()
        try:
            self._submit(lambda: _fulfil(future, job))
            with self._translating():
                return future.result()
        except KeyboardInterrupt:
            if not future.cancel():
                self._end_long_statement(future)
            raise

    def _end_long_statement(self, future: Future[T]) -> None:
        """After Ctrl-C, end a statement such as VACUUM; its transaction is rolled back."""
        # Again and again: an interrupt between two statements ends neither.
        while libraries.futures.wait([future], INTERRUPTED_S).not_done:
            if (writer := self._writer) is not None:
                self._interrupt(writer)

    @abstractmethod
    def _interrupt(self, connection: Connection) -> None:
        """End the statement that another thread waits for; nothing happens if there is none."""

    def _submit(self, job: Callable[[], object]) -> None:
        self.require_writable()
        with self._lock:
            self._require_open()
            if self._thread is None:
                # Only writers pay for the import (it brings logging with it).
                self._thread = libraries.futures.ThreadPoolExecutor(
                    1, thread_name_prefix="qmd-writer"
                )
            self._thread.submit(job)

    # -- upkeep ------------------------------------------------------------------------

    @abstractmethod
    def merge_full_text(self) -> None:
        """
        Merge what many writes have left in full text, so that searches look into fewer places.

        It takes many short transactions, between which others can write.
        """

    def gather_common_words(self, most_s: float | None = None) -> int:
        """
        Compute what makes searches for very common words fast, if there are many documents.

        It takes many short transactions, between which others can write, and goes on where an
        earlier call ended.

        Args:
            most_s: End after about this many seconds; None when all is done.

        Returns:
            How many words are left, at least 1; 0 if nothing is left to do.
        """
        return 0

    def index_vectors(self) -> None:  # noqa: B027 - a file needs none
        """
        Make the index that searches of very many vectors need, if there is none.

        It may take minutes, in which others can write.
        """

    def compact(self) -> None:  # noqa: B027 - a server does it alone
        """Give unused space back to the disk."""

    def shrink(self) -> None:  # noqa: B027 - a server does it alone
        """As `compact`, as far as that takes little time, disk and memory: after large changes."""

    # -- other processes ---------------------------------------------------------------

    def shared_lock(self, purpose: str) -> SharedLock:
        """
        A lock of this database; all processes that name the same ``purpose`` mean the same lock.

        Only a database on a server has such locks. Processes with a file lock files beside it.
        """
        raise TypeError("a database file has no shared locks")

    def is_locked(self, purpose: str) -> bool:
        """Whether any process holds a `shared_lock`."""
        raise TypeError("a database file has no shared locks")

    def change_feed(self) -> ChangeFeed | None:
        """
        What tells at once which documents other processes change; None with a file.

        Whoever has a file compares `identities` now and then. The caller closes the feed.
        """
        return None

    @abstractmethod
    def process_name(self) -> str:
        """
        A name of this process that no other process with the database has or will have.

        From the first call on, until the store is closed or the process ends, `has_process` is
        true of it for all of them, on whichever machine.

        Raises:
            StoreError: The server cannot be reached.
        """

    @abstractmethod
    def has_process(self, name: str) -> bool:
        """Whether a process that `process_name` named is still there."""

    def embedding_claims(self, model: StoredModel) -> EmbeddingClaims:
        """Hands out the chunks to embed with a model. The caller closes it."""
        return EmbeddingClaims(self, model)

    # -- closing -----------------------------------------------------------------------

    def require_current(self) -> None:  # noqa: B027 - a URL always names the same database
        """
        Raises:
            DatabaseReplacedError: The path does not name the database that was opened.
        """

    @property
    def is_superseded(self) -> bool:
        """Whether another database is at the path now, which another store can open."""
        return False

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("The database is closed.")

    def abandon(self) -> bool:
        """
        Close the store for good, so that its path can be opened again.

        Every later use raises DatabaseReplacedError. While something reads from the store, nothing
        is done.

        Returns:
            Whether the store is closed.
        """
        with self._lock:
            if self._readers:
                return False
            self._abandoned = True
        self.close()
        return True

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        with self._lock:
            self._closed = True
            # Closed first: the last connection of a process that is a writer checkpoints the WAL
            # of a file and removes it, so that one file is left.
            idle = self._idle.take_all()
            thread, self._thread = self._thread, None
        for connection in idle:
            self._close_connection(connection)
        if thread is not None:
            thread.submit(self._close_writer)
            thread.shutdown(wait=True)
        self._release()

    def _close_connection(self, connection: Connection) -> None:
        connection.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._close_connection(self._writer)
            self._writer = None

    @abstractmethod
    def _release(self) -> None:
        """Give up what is held besides connections; perhaps twice."""


def _fulfil(future: Future[T], job: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job())
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it
        future.set_exception(error)


#: The chunks of so many documents are put in order at once. A note that is saved while others
#: wait comes after these.
DOCUMENTS = 128


class EmbeddingClaims:
    """
    Hands out chunks that wait for a vector of one model. For one thread.

    Those of the notes that were changed last come first: people ask for these. Processes with a
    file may embed the same chunks; one of their vectors is kept.
    """

    def __init__(self, store: Store, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._next_ids: deque[int] = deque()

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        """
        Claim chunks, sorted by id. Those of the call before are not claimed any more, and come
        again if they were given no vector.

        Chunks with the vector of an earlier title come when none is without a vector.

        Args:
            limit: Claim at most this many.
            collection_ids: Only chunks of these collections; empty for all.

        Returns:
            None if no chunk waits; no chunks while others have claimed all that wait.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
            StoreError: The server cannot be reached.
        """
        with self._store.reading() as reader:
            for outdated in (False, True):
                while self._next_ids or self._look(reader, collection_ids, outdated):
                    ids = [self._next_ids.popleft() for _ in range(min(limit, len(self._next_ids)))]
                    chunks = reader.embeddings.waiting_among(self._model, ids)
                    if chunks:  # else others have embedded them meanwhile
                        return chunks
        return None

    def _look(self, reader: Reader, collection_ids: Sequence[int], outdated: bool) -> bool:
        """Whether chunks wait. The newest of them come next."""
        waiting = reader.embeddings.newest_waiting(
            self._model, DOCUMENTS, collection_ids, outdated=outdated
        )
        self._next_ids.extend(chunk.id for chunk in waiting)
        return bool(waiting)

    def close(self) -> None:
        """Claim nothing any more. May be called twice."""
