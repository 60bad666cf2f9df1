"""
The open database: one writer thread with one connection, and a pool of read-only readers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd import cancellation
from qmd.errors import ReadOnlyError, StoreError
from qmd.sqlite import (
    BUSY_TIMEOUT_S,
    Connection,
    Error,
    FrozenConnection,
    connect,
    missing_database,
    translate,
)
from qmd.store import migrate

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

IDLE_READERS = 4
#: How long a write that may be dropped waits for another process.
_PATIENCE_MS = 100


class Store:
    """
    One database file. Thread-safe.

    Reads run on the calling thread (`reading`), writes one after the other on the writer
    thread, each in its own ``BEGIN IMMEDIATE`` transaction (`write`): all of it or nothing.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        timeout: float = BUSY_TIMEOUT_S,
    ) -> None:
        """
        ``timeout``: seconds to wait for a lock that another process holds.

        Raises:
            DatabaseMissingError: No such file and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say; the file is left as it was.
        """
        self.path = path = path.absolute()  # the working directory may change
        self.timeout = timeout
        self.read_only = read_only
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        self._writer: Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        if not _exists(path):
            if not create or read_only:
                raise missing_database(path)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ReadOnlyError(
                    f"The directory {path.parent} cannot be made: {error.strerror}",
                    hint="Give another file with --db.",
                ) from error
            self._migrate()
            return
        with self._translating():
            reader = connect(path, read_only=True, timeout=self.timeout)
            current = False
            try:
                current = migrate.check(reader, path)
            finally:
                if current and not isinstance(reader, FrozenConnection):
                    self._idle.append(reader)
                else:
                    reader.close()
            if not current:
                if read_only:
                    with self.reading() as connection:
                        migrate.require_current(connection, path)
                self._migrate()

    # -- reading -----------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """
        A read-only connection inside one snapshot; keep it short, it holds back the WAL.

        Raises:
            RequestEndedError: In the middle of the block, too: see `qmd.cancellation`.
        """
        with self._translating():
            with self._lock:
                if self._closed:
                    raise StoreError("The database is closed.")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = connect(self.path, read_only=True, timeout=self.timeout)
            keep = False
            try:
                with cancellation.interruptible(connection.interrupt):
                    connection.execute("BEGIN")
                    yield connection
                    connection.execute("COMMIT")
                keep = not isinstance(connection, FrozenConnection)
            finally:
                with self._lock:
                    keep = keep and not self._closed and len(self._idle) < IDLE_READERS
                    if keep:
                        self._idle.append(connection)
                if not keep:
                    connection.close()

    # -- writing -----------------------------------------------------------------------

    def write(self, function: Callable[[Connection], T]) -> T:
        """
        Run ``function(connection)`` on the writer thread in one transaction, and wait for it.

        Raises:
            ReadOnlyError, DatabaseBusyError, DiskFullError: Rolled back, nothing changed.
        """
        return self._wait(self._submit(lambda: self._transaction(function)))

    def write_outside_transaction(self, function: Callable[[Connection], T]) -> T:
        """For VACUUM and checkpoints, which SQLite refuses inside a transaction."""
        return self._wait(self._submit(lambda: function(self._writing())))

    def write_soon(
        self, function: Callable[[Connection], object], written: Callable[[], object]
    ) -> None:
        """
        Queue a write whose loss does not matter: nobody waits for it. ``written`` is called
        once it is committed.

        It is dropped where the database is read-only or closed, where another process holds
        the lock for more than a moment, and where the disk is full.
        """

        def run() -> None:
            try:
                connection = self._writing()
                connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
                try:
                    self._transaction(function)
                    written()
                finally:
                    connection.execute(f"PRAGMA busy_timeout = {round(self.timeout * 1000)}")
            except (Error, StoreError) as error:
                import logging

                logging.getLogger(__name__).debug("a write was dropped: %s", error)

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

    def _submit(self, job: Callable[[], T]) -> Future[T]:
        self.require_writable()
        with self._lock:
            if self._closed:
                raise StoreError("The database is closed.")
            if self._thread is None:
                # Only writers pay for the import (it brings logging with it).
                from concurrent.futures import ThreadPoolExecutor

                self._thread = ThreadPoolExecutor(1, thread_name_prefix="qmd-writer")
            return self._thread.submit(job)

    def _wait(self, future: Future[T]) -> T:
        with self._translating():
            return future.result()

    def _writing(self) -> Connection:
        if self._writer is None:
            self._writer = connect(self.path, read_only=False, timeout=self.timeout)
        return self._writer

    def _transaction(self, function: Callable[[Connection], T]) -> T:
        connection = self._writing()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = function(connection)
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or an interrupt may have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _migrate(self) -> None:
        def run() -> None:
            migrate.migrate(self._writing(), self.path)

        try:
            self._wait(self._submit(run))
        except BaseException:
            self.close()
            raise

    # -- closing -----------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            thread, self._thread = self._thread, None
        if thread is not None:
            # Readers go first: the last connection of a process that is a writer checkpoints
            # the WAL and removes it, so that one file is left.
            for connection in idle:
                connection.close()
            idle = []
            thread.submit(self._close_writer)
            thread.shutdown(wait=True)
        for connection in idle:
            connection.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            cancellation.check()  # which has interrupted the statement
            raise translate(error, self.path) from error


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise StoreError(
            f"The database {path} cannot be reached: {getattr(error, 'strerror', error)}",
            hint="Check the path and its permissions, or give another file with --db.",
        ) from error
    return True
