"""
Holds a database open: one writer thread with one connection, and a pool of readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd import errors, libraries, system
from qmd.store import sqlite
from qmd.store.reader import Reader, Writer
from qmd.store.sql import SQLITE, Sql
from qmd.store.sqlite import migrate
from qmd.store.sqlite.connections import Change, Connections, exists, replaced_error
from qmd.store.sqlite.library import (
    FAILURES,
    Connection,
    FrozenConnection,
    damaged,
    library,
    missing_database,
    schema_version,
    translate,
)
from qmd.store.store import LOCK_TIMEOUT_S, Store
from qmd.system import cancellation

if TYPE_CHECKING:
    from qmd.store.sqlite.common_word_build import CommonWordBuild, WordLimits
    from qmd.values.access import AccessScope

#: Connections of one scope that wait for readers.
IDLE_READERS = 4
T = TypeVar("T")


class SqliteStore(Store):
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
        timeout_s: float = LOCK_TIMEOUT_S,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> None:
        """
        Args:
            timeout_s: How long to wait for a lock that another process holds.
            progress: As in `migrate.migrate`.

        Raises:
            DatabaseMissingError: No such file and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say; the file is left as it was.
        """
        self.path = path = path.absolute()  # the working directory may change
        super().__init__(path, read_only=read_only, timeout_s=timeout_s, most_idle=IDLE_READERS)
        self._progress = progress
        self._connections = Connections(path, timeout_s, self._on_replaced)
        self._gathering: CommonWordBuild | None = None
        self._schema: int | None = None  # SQLite's number of the schema that was last checked
        if not exists(path):
            if not create or read_only:
                raise missing_database(path)
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise errors.ReadOnlyError(
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
            reader = self._connections.open(read_only=True)
            current = False
            try:
                schema = schema_version(reader)  # before it is checked, or a change were missed
                current = migrate.check(reader, path)
                self._schema = schema if current else None
            finally:
                if current and not isinstance(reader, FrozenConnection):
                    self._idle.keep(None, reader)
                else:
                    self._connections.close(reader)
            if not current:
                if self.read_only:
                    with self.reading() as opened:
                        migrate.require_current(opened.connection, path)
                self._migrate()

    # -- reading -----------------------------------------------------------------------

    @contextmanager
    def reading_for(self, scope: AccessScope | None) -> Iterator[Reader]:
        """
        A reader inside one snapshot; keep it short, it holds back the WAL.

        Raises:
            DatabaseReplacedError: The file is not at its path any more.
            RequestEndedError: In the middle of the block, too: see `qmd.system.cancellation`.
        """
        with self._reading(scope) as connection:
            yield Reader(Sql(connection, SQLITE, is_scoped=scope is not None))

    @contextmanager
    def _reading(self, scope: AccessScope | None) -> Iterator[Connection]:
        """A connection inside one snapshot, restricted to a scope; None for no restriction."""
        with self._translating():
            with self._lock:
                self._require_open()
                self._readers += 1
                connection = self._idle.take(scope)
            keep = False
            try:
                self.require_current()
                if connection is None:
                    connection = self._connections.open(read_only=True)
                    if scope is not None:
                        sqlite.scope.restrict(connection, scope)
                with cancellation.interruptible(connection.interrupt):
                    connection.execute("BEGIN")
                    if scope is None:  # else the connection may not see what migrations there were
                        self._require_schema(connection)
                    yield connection
                    connection.execute("COMMIT")
                keep = not isinstance(connection, FrozenConnection)
            finally:
                surplus: list[Connection] = []
                with self._lock:
                    self._readers -= 1
                    if keep and not self._closed and connection is not None:
                        surplus = self._idle.keep(scope, connection)
                    elif connection is not None:
                        surplus = [connection]
                for each in surplus:
                    self._connections.close(each)

    # -- writing -----------------------------------------------------------------------

    def write_outside_transaction(self, function: Callable[[Writer], T]) -> T:
        """For VACUUM and checkpoints, which SQLite refuses inside a transaction."""

        def run() -> T:
            self.require_current()
            return function(Writer(Sql(self._writing(), SQLITE)))

        return self._run(run)

    def engine(self) -> str:
        """The SQLite library and its version."""
        return library()

    @property
    def damage_hint(self) -> str:
        """What a person does when this database is damaged."""
        return damaged(self.path).hint or ""

    def process_name(self) -> str:
        """As `qmd.store.store.Store.process_name`, by the system's number of the process."""
        return system.running.this_process()

    def has_process(self, name: str) -> bool:
        """As `qmd.store.store.Store.has_process`."""
        return system.running.runs(name)

    def _require_open(self) -> None:
        if self._abandoned:
            raise replaced_error(self.path, Change.OTHER if self.path.exists() else Change.MISSING)
        super()._require_open()

    def _interrupt(self, connection: Connection) -> None:
        connection.interrupt()

    def _writing(self) -> Connection:
        if self._writer is None:
            self._writer = self._connections.open(read_only=False)
        return self._writer

    def _transaction(self, function: Callable[[Writer], T], patience_s: float) -> T:
        self.require_current()
        connection = self._writing()
        if patience_s == self.timeout_s:
            return self._committed(connection, function)
        connection.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
        try:
            return self._committed(connection, function)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {round(self.timeout_s * 1000)}")

    def _committed(self, connection: Connection, function: Callable[[Writer], T]) -> T:
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._require_schema(connection)
            result = function(Writer(Sql(connection, SQLITE)))
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or an interrupt may have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.require_current()  # else it was committed to a file that nobody can open any more
        return result

    def _require_schema(self, connection: Connection) -> None:
        """
        Raises:
            SchemaTooNewError: A newer program has migrated the database while it was open.
        """
        schema = schema_version(connection)
        if schema != self._schema:
            migrate.require_current(connection, self.path)
            self._schema = schema

    def _migrate(self) -> None:
        def run() -> None:
            migrate.migrate(self._writing(), self.path, progress=self._progress)

        try:
            self._run(run)
        except BaseException:
            self.close()
            raise

    def merge_full_text(self) -> None:
        def merge(writer: Writer) -> bool:
            return sqlite.upkeep.merge_full_text(writer.connection, is_first=is_first)

        is_first = True
        while self.write(merge):
            cancellation.check()
            is_first = False

    def gather_common_words(
        self, most_s: float | None = None, *, limits: WordLimits | None = None
    ) -> int:
        if self._gathering is None:
            self._gathering = sqlite.common_word_build.CommonWordBuild(self, limits)
        return self._gathering.run(most_s)

    def compact(self) -> None:
        """Give free pages back to the disk."""
        self.write_outside_transaction(lambda writer: sqlite.upkeep.compact(writer.connection))

    def shrink(self) -> None:
        """Give free pages back to the disk, in short transactions if the file allows that."""
        upkeep = sqlite.upkeep
        if self.write(lambda writer: upkeep.is_worth_compacting(writer.connection)):
            with suppress(errors.DiskFullError):
                self.compact()
            return
        while self.write(lambda writer: upkeep.give_back(writer.connection)):
            cancellation.check()

    # -- the file ----------------------------------------------------------------------

    def require_current(self) -> None:
        """
        Raises:
            DatabaseReplacedError: The path does not name the file that was opened.
        """
        self._connections.require_current()

    def _on_replaced(self, error: errors.DatabaseReplacedError) -> None:
        with self._lock:
            if self._closed:
                return
            if self._thread is not None:
                self._thread.submit(self._save_log)
        libraries.logging.getLogger(__name__).error("%s", error.with_hint)

    @property
    def is_superseded(self) -> bool:
        """Whether the path names a file that another store can open instead of this one."""
        if self._abandoned:
            return self.path.exists()
        change = self._connections.change()
        return change is not None and change is not Change.MISSING

    def _close_writer(self) -> None:
        if self._abandoned:
            self._save_log()
        super()._close_writer()

    def _save_log(self) -> None:
        """Runs on the writer thread."""
        if self._writer is not None:
            self._connections.save_log(self._writer)

    # -- closing -----------------------------------------------------------------------

    def _close_connection(self, connection: Connection) -> None:
        self._connections.close(connection)

    def _release(self) -> None:
        self._connections.release_file()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            cancellation.check()  # which has interrupted the statement
            translated = translate(error, self.path)
            if type(translated) is errors.StoreError and self._is_damaged():
                translated = damaged(self.path)
            raise translated from error
        except (errors.QmdError, OSError):
            raise
        except Exception as error:
            # A damaged value may lead to any error, and so may a mistake of ours.
            if not self._is_damaged():
                raise
            raise damaged(self.path) from error

    def _is_damaged(self) -> bool:
        """Reads the whole file: only after an error that nobody expected."""
        return sqlite.damage.find(self.path) is not None
