"""
Opens connections to one database file, and notices when its path names another file.

SQLite goes on with the file it has open when that is deleted or replaced: what is written then is
lost, without an error.
"""

from __future__ import annotations

import enum
import os
import threading
from collections.abc import Callable
from pathlib import Path

from qmd import libraries
from qmd.errors import DatabaseReplacedError, StoreError
from qmd.store.sqlite.library import Connection, Error, FrozenConnection, connect

_LOG_SUFFIXES = ("-wal", "-shm")

#: Device and inode.
_Identity = tuple[int, int]


class Change(enum.Enum):
    """What has become of a database file since it was opened."""

    MISSING = "missing"  # deleted, moved, or out of reach
    OTHER = "other"  # the path names another file
    LOG = "log"  # it is there, but its -wal or -shm was deleted or replaced


class OpenedFile:
    """
    The file that a database's path names now, links followed.

    A program that writes into the file itself (``cp``) is not noticed: it stays the same file.

    Raises:
        OSError: There is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # SQLite keeps the log beside the file itself, not beside a link to it.
        self._real_path = os.path.realpath(path)
        # An open file's inode is not given to another file. O_PATH, because closing any other
        # descriptor of a file drops the locks that SQLite holds on it in this process.
        self._descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC) if hasattr(os, "O_PATH") else -1
        self._identity = _identity(
            path.stat() if self._descriptor < 0 else os.fstat(self._descriptor)
        )
        self._log: dict[str, _Identity | None] = dict.fromkeys(_LOG_SUFFIXES)

    def note_log(self) -> None:
        """
        Remember the log of a connection that was just opened.

        Nobody may delete or replace it before all connections are closed (`forget_log`).
        """
        for suffix, before in self._log.items():
            if before is None:
                self._log[suffix] = _identity_at(self._real_path + suffix)

    def forget_log(self) -> None:
        """No connection is open: whoever closes the last one of all processes deletes it."""
        self._log = dict.fromkeys(_LOG_SUFFIXES)

    def change(self) -> Change | None:
        """None while the path names the file and its log as they were opened."""
        change = self._change_of_file()
        if change is not None:
            return change
        for suffix, before in list(self._log.items()):
            if before is not None and _identity_at(self._real_path + suffix) != before:
                return self._change_of_file() or Change.LOG  # both may have just been deleted
        return None

    def _change_of_file(self) -> Change | None:
        now = _identity_at(self._path)
        if now is None:
            return Change.MISSING
        return None if now == self._identity else Change.OTHER

    def is_log_replaced(self) -> bool:
        """Whether another log lies in the place of this one's: not just none."""
        for suffix, before in list(self._log.items()):
            if _identity_at(self._real_path + suffix) not in (before, None):
                return True
        return False

    def close(self) -> None:
        """May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def replaced_error(path: Path, change: Change) -> DatabaseReplacedError:
    """What to tell whoever uses a database that has changed so."""
    if change is Change.MISSING:
        return DatabaseReplacedError(
            f"The database {path} was deleted or moved while it was open.",
            hint=(
                "Put the file back, or a backup with 'qmd db restore', or make a new one with"
                " 'qmd up FOLDER'. What is at that path then is opened at once."
            ),
        )
    if change is Change.LOG:
        return DatabaseReplacedError(
            f"The log of the database {path} (-wal, -shm) was deleted or replaced while it was"
            " open.",
            hint="Try again: the database is opened anew. Leave these files alone meanwhile.",
        )
    return DatabaseReplacedError(
        f"The database {path} was replaced while it was open.",
        hint="Try again: what is at that path now is opened.",
    )


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _identity_at(path: str | Path) -> _Identity | None:
    try:
        return _identity(os.stat(path))  # noqa: PTH116 - asked before each use of the database
    except OSError:
        return None


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
        if self.change() is None and self._change is None:
            return
        with self._lock:  # looked at again, lest an earlier look of another thread comes after it
            change = self.change()
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
