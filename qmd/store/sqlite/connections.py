"""Opens connections to one database file, and notices when its path names another file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from qmd import libraries
from qmd.errors import DatabaseReplacedError, StoreError
from qmd.store.sqlite.library import Connection, Error, FrozenConnection, connect
from qmd.store.sqlite.opened_file import Change, OpenedFile, replaced_error

#: How long work that may be left undone waits for a lock of another process.
PATIENCE_MS = 100


class Connections:
    """
    The open connections to the file that the path named first. Thread-safe.

    Args:
        path: Absolute, for the working directory may change.
        timeout_s: How long a connection waits for a lock that another process holds.
        replaced: Called once for each change of the file, without a lock held.
    """

    def __init__(
        self, path: Path, timeout_s: float, replaced: Callable[[DatabaseReplacedError], object]
    ) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._replaced = replaced
        self._lock = threading.Lock()
        self._open_count = 0
        self._file: OpenedFile | None = None
        self._change: Change | None = None

    def open(self, *, read_only: bool) -> Connection:
        """
        A new connection. It makes the file if there was none when the first one was opened.

        Raises:
            DatabaseReplacedError, StoreError: As their names say.
        """
        is_new = self._file is None and not exists(self._path)
        if not is_new:
            self._bind()
        self.require_current()
        try:
            connection = connect(
                self._path, read_only=read_only, create=is_new, timeout=self._timeout_s
            )
        except StoreError:
            self.require_current()  # which says more of what was deleted just now
            raise
        try:
            self._bind()
            self.require_current()  # it may have been replaced while it was opened
            with self._lock:
                if self._file is not None and _is_counted(connection):
                    self._open_count += 1
                    self._file.note_log()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self, connection: Connection) -> None:
        if _is_counted(connection):
            with self._lock:
                self._open_count -= 1
                if not self._open_count and self._file is not None:
                    self._file.forget_log()  # before it is closed, for closing deletes the log
        connection.close()

    def release_file(self) -> None:
        """After all connections were closed. May be called twice."""
        if self._file is not None:
            self._file.close()

    def change(self) -> Change | None:
        """What has become of the file; None while it is as it was opened, or not opened yet."""
        return None if self._file is None else self._file.change()

    def require_current(self) -> None:
        """
        Raises:
            DatabaseReplacedError: The path does not name the file that was opened.
        """
        change = self.change()
        if change is None and self._change is None:
            return
        with self._lock:
            before, self._change = self._change, change
        if change is None:
            return
        error = replaced_error(self._path, change)
        if change is not before:
            self._replaced(error)
        raise error

    def save_log(self, writer: Connection) -> None:
        """
        Put what only the log holds into the file, as far as it can be: the log may have been
        deleted, or left behind when the file was moved. Runs on the thread of ``writer``.
        """
        if self._file is None or self._file.change() is Change.OTHER:
            return
        if self._file.is_log_replaced():
            return  # both may belong to another file by now
        try:
            writer.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            writer.execute(f"PRAGMA busy_timeout = {round(self._timeout_s * 1000)}")
        except Error as error:
            libraries.logging.getLogger(__name__).warning(
                "the log of %s is lost: %s", self._path, error
            )

    def _bind(self) -> None:
        """Stay with the file that the path names now."""
        with self._lock:
            if self._file is None:
                try:
                    self._file = OpenedFile(self._path)
                except (FileNotFoundError, NotADirectoryError) as error:
                    raise replaced_error(self._path, Change.MISSING) from error
                except OSError as error:  # no descriptor is left, or no permission
                    raise StoreError(
                        f"The database {self._path} cannot be opened: {error.strerror}",
                        hint="Try again in a moment, and check the permissions of the file.",
                    ) from error


def exists(path: Path) -> bool:
    """Raises StoreError: Nobody can tell, because a directory above it is out of reach."""
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


def _is_counted(connection: Connection) -> bool:
    """Whether it has the log open, which nobody may delete meanwhile."""
    return not isinstance(connection, FrozenConnection)
