"""
Holds a database open: one writer thread with one connection, and a pool of readers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import QmdError, ReadOnlyError, StoreError
from qmd.store.sqlite import migrate, old_vectors
from qmd.store.sqlite.library import (
    BUSY_TIMEOUT_S,
    FAILURES,
    Connection,
    Error,
    FrozenConnection,
    connect,
    damaged,
    library,
    missing_database,
    translate,
)
from qmd.store.sqlite.opened_file import Change, OpenedFile, replaced_error
from qmd.store.sqlite.reader import SqliteReader, SqliteWriter
from qmd.system import cancellation

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

IDLE_READERS = 4
#: How long a write that may be dropped waits for another process.
_PATIENCE_MS = 100


class SqliteStore:
    """
    One database file. Thread-safe.

    Reads run on the calling thread (`reading`), writes one after the other on the writer
    thread, each in its own ``BEGIN IMMEDIATE`` transaction (`write`): all of it or nothing.

    It stays with the file that it was opened with. While that is deleted, moved or replaced,
    every use raises DatabaseReplacedError; another file at the path needs another store.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        """
        ``timeout_s``: how long to wait for a lock that another process holds.

        Raises:
            DatabaseMissingError: No such file and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say; the file is left as it was.
        """
        self.path = path = path.absolute()  # the working directory may change
        self.timeout_s = timeout_s
        self.read_only = read_only
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        self._abandoned = False
        self._connections = 0
        self._readers = 0
        self._writer: Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._file: OpenedFile | None = None
        self._change: Change | None = None
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
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        path = self.path
        with self._translating():
            reader = self._connect(read_only=True)
            current = stray = False
            try:
                current = migrate.check(reader, path)
                stray = current and old_vectors.exist(reader)
            finally:
                if current and not isinstance(reader, FrozenConnection):
                    self._idle.append(reader)
                else:
                    self._disconnect(reader)
            if not current:
                if self.read_only:
                    with self.reading() as opened:
                        migrate.require_current(opened.connection, path)
                self._migrate()
            elif stray and not self.read_only:
                self.write(lambda writer: old_vectors.remove(writer.connection))

    # -- reading -----------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        """
        A reader inside one snapshot; keep it short, it holds back the WAL.

        Raises:
            DatabaseReplacedError: The file is not at its path any more.
            RequestEndedError: In the middle of the block, too: see `qmd.system.cancellation`.
        """
        with self._translating():
            with self._lock:
                self._require_open()
                self._readers += 1
                connection = self._idle.pop() if self._idle else None
            keep = False
            try:
                self.require_current()
                if connection is None:
                    connection = self._connect(read_only=True)
                with cancellation.interruptible(connection.interrupt):
                    connection.execute("BEGIN")
                    yield SqliteReader(connection)
                    connection.execute("COMMIT")
                keep = not isinstance(connection, FrozenConnection)
            finally:
                with self._lock:
                    self._readers -= 1
                    keep = keep and not self._closed and len(self._idle) < IDLE_READERS
                    if keep and connection is not None:
                        self._idle.append(connection)
                if not keep and connection is not None:
                    self._disconnect(connection)

    # -- writing -----------------------------------------------------------------------

    def write(self, function: Callable[[SqliteWriter], T]) -> T:
        """
        Run ``function(writer)`` on the writer thread in one transaction, and wait for it.

        Raises:
            ReadOnlyError, DatabaseBusyError, DiskFullError: Rolled back, nothing changed.
            DatabaseReplacedError: The file is not at its path any more: nothing was kept.
        """
        return self._wait(self._submit(lambda: self._transaction(function)))

    def write_outside_transaction(self, function: Callable[[SqliteWriter], T]) -> T:
        """For VACUUM and checkpoints, which SQLite refuses inside a transaction."""

        def run() -> T:
            self.require_current()
            return function(SqliteWriter(self._writing()))

        return self._wait(self._submit(run))

    def write_soon(
        self, function: Callable[[SqliteWriter], object], written: Callable[[], object]
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
                    connection.execute(f"PRAGMA busy_timeout = {round(self.timeout_s * 1000)}")
            except (Error, StoreError) as error:
                import logging

                logging.getLogger(__name__).debug("a write was dropped: %s", error)

        try:
            self._submit(run)
        except StoreError:
            return

    def engine(self) -> str:
        """The SQLite library and its version."""
        return library()

    @property
    def damage_hint(self) -> str:
        """What a person does when this database is damaged."""
        return damaged(self.path).hint or ""

    def require_writable(self) -> None:
        """Raises ReadOnlyError."""
        if self.read_only:
            raise ReadOnlyError(
                "The database was opened read-only.", hint="Open it without read_only."
            )

    def _submit(self, job: Callable[[], T]) -> Future[T]:
        self.require_writable()
        with self._lock:
            self._require_open()
            if self._thread is None:
                # Only writers pay for the import (it brings logging with it).
                from concurrent.futures import ThreadPoolExecutor

                self._thread = ThreadPoolExecutor(1, thread_name_prefix="qmd-writer")
            return self._thread.submit(job)

    def _require_open(self) -> None:
        if self._abandoned:
            raise replaced_error(self.path, Change.OTHER if self.path.exists() else Change.MISSING)
        if self._closed:
            raise StoreError("The database is closed.")

    def _wait(self, future: Future[T]) -> T:
        with self._translating():
            return future.result()

    def _writing(self) -> Connection:
        if self._writer is None:
            self._writer = self._connect(read_only=False)
        return self._writer

    def _transaction(self, function: Callable[[SqliteWriter], T]) -> T:
        self.require_current()
        connection = self._writing()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = function(SqliteWriter(connection))
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or an interrupt may have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.require_current()  # else it was committed to a file that nobody can open any more
        return result

    def _migrate(self) -> None:
        def run() -> None:
            migrate.migrate(self._writing(), self.path)

        try:
            self._wait(self._submit(run))
        except BaseException:
            self.close()
            raise

    def merge_full_text(self) -> None:
        from qmd.store.sqlite import upkeep

        def merge(writer: SqliteWriter) -> bool:
            return upkeep.merge_full_text(writer.connection, is_first=is_first)

        is_first = True
        while self.write(merge):
            cancellation.check()
            is_first = False

    def compact(self) -> None:
        """Give free pages back to the disk."""
        from qmd.store.sqlite import upkeep

        self.write_outside_transaction(lambda writer: upkeep.compact(writer.connection))

    # -- the file ----------------------------------------------------------------------

    def require_current(self) -> None:
        """
        Raises:
            DatabaseReplacedError: The path does not name the file that was opened.
        """
        change = None if self._file is None else self._file.change()
        if change is None and self._change is None:
            return
        with self._lock:
            before, self._change = self._change, change
            is_new = change is not None and change is not before and not self._closed
            if is_new and self._thread is not None:
                self._thread.submit(self._save_log)
        if change is None:
            return
        error = replaced_error(self.path, change)
        if is_new:
            import logging

            logging.getLogger(__name__).error("%s", error.with_hint)
        raise error

    @property
    def is_superseded(self) -> bool:
        """Whether the path names a file that another store can open instead of this one."""
        if self._abandoned:
            return self.path.exists()
        change = None if self._file is None else self._file.change()
        return change is not None and change is not Change.MISSING

    def abandon(self) -> bool:
        """
        Close it for good, so that its file can be opened anew; every later use raises
        DatabaseReplacedError. False, and nothing is done, while something reads from it.
        """
        with self._lock:
            if self._readers:
                return False
            self._abandoned = True
            if self._thread is not None:
                self._thread.submit(self._save_log)
        self.close()
        return True

    def _connect(self, *, read_only: bool) -> Connection:
        """A new connection, to the file that this store was opened with."""
        is_new = self._file is None and not _exists(self.path)
        if not is_new:
            self._bind()
        self.require_current()
        try:
            connection = connect(
                self.path, read_only=read_only, create=is_new, timeout=self.timeout_s
            )
        except StoreError:
            self.require_current()  # which says more of what was deleted just now
            raise
        try:
            self._bind()
            self.require_current()  # it may have been replaced while it was opened
            with self._lock:
                if self._file is not None and _is_counted(connection):
                    self._connections += 1
                    self._file.note_log()
        except BaseException:
            connection.close()
            raise
        return connection

    def _bind(self) -> None:
        """Stay with the file that the path names now."""
        with self._lock:
            if self._file is None:
                try:
                    self._file = OpenedFile(self.path)
                except (FileNotFoundError, NotADirectoryError) as error:
                    raise replaced_error(self.path, Change.MISSING) from error
                except OSError as error:  # no descriptor is left, or no permission
                    raise StoreError(
                        f"The database {self.path} cannot be opened: {error.strerror}",
                        hint="Try again in a moment, and check the permissions of the file.",
                    ) from error

    def _disconnect(self, connection: Connection) -> None:
        if _is_counted(connection):
            with self._lock:
                self._connections -= 1
                if not self._connections and self._file is not None:
                    self._file.forget_log()  # before it is closed, for closing deletes the log
        connection.close()

    def _save_log(self) -> None:
        """
        Put what only the log holds into the file, as far as it can be: the log may have been
        deleted, or left behind when the file was moved. Runs on the writer thread.
        """
        if self._writer is None or self._file is None:
            return
        if self._file.change() is Change.OTHER or self._file.is_log_replaced():
            return  # both may belong to another file by now
        try:
            self._writer.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._writer.execute(f"PRAGMA busy_timeout = {round(self.timeout_s * 1000)}")
        except Error as error:
            import logging

            logging.getLogger(__name__).warning("the log of %s is lost: %s", self.path, error)

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
                self._disconnect(connection)
            idle = []
            thread.submit(self._close_writer)
            thread.shutdown(wait=True)
        for connection in idle:
            self._disconnect(connection)
        if self._file is not None:
            self._file.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._disconnect(self._writer)
            self._writer = None

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            cancellation.check()  # which has interrupted the statement
            translated = translate(error, self.path)
            if type(translated) is StoreError and self._is_damaged():
                translated = damaged(self.path)
            raise translated from error
        except (QmdError, OSError):
            raise
        except Exception as error:
            # A damaged value may lead to any error, and so may a mistake of ours.
            if not self._is_damaged():
                raise
            raise damaged(self.path) from error

    def _is_damaged(self) -> bool:
        """Reads the whole file: only after an error that nobody expected."""
        from qmd.store.sqlite import damage

        return damage.find(self.path) is not None


def _is_counted(connection: Connection) -> bool:
    """Whether it has the log open, which nobody may delete meanwhile."""
    return not isinstance(connection, FrozenConnection)


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
