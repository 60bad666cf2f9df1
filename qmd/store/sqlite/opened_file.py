"""
Remembers which file was opened as the database, and notices when its path names another.

SQLite goes on with the file it has open when that is deleted or replaced: what is written then is
lost, without an error.
"""

from __future__ import annotations

import enum
import os
from pathlib import Path

from qmd.errors import DatabaseReplacedError

_LOG_SUFFIXES = ("-wal", "-shm")

_Identity = tuple[int, int]
"""Device and inode."""


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
        now = _identity_at(self._path)
        if now is None:
            return Change.MISSING
        if now != self._identity:
            return Change.OTHER
        for suffix, before in list(self._log.items()):
            if before is not None and _identity_at(self._real_path + suffix) != before:
                return Change.LOG
        return None

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
