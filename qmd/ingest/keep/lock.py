"""
The lock that only one of all processes with a database holds: the one that indexes.

The operating system releases it when that process ends, even if it is killed. So does the server
of a database, whose processes may be on several machines.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from qmd.system.user_dirs import lock_beside

if TYPE_CHECKING:
    from qmd.store import SharedLock, Store


def lock_of(store: Store) -> IndexLock | SharedLock:
    """The lock of the database of a store: a file beside a file, or a lock of the server."""
    location = store.location
    return IndexLock(location) if isinstance(location, Path) else store.shared_lock("index")


def is_kept(store: Store) -> bool:
    """Whether a process, possibly this one, holds the lock of the database now."""
    location = store.location
    return is_locked(location) if isinstance(location, Path) else store.is_locked("index")


def lock_name(store: Store) -> str:
    """The lock, in the words of a message."""
    location = store.location
    return f"the lock {lock_file(location)}" if isinstance(location, Path) else "its lock"


def lock_file(database: Path) -> Path:
    """The path of the lock file, ``<database>.lock``, the same for all links to the database."""
    return lock_beside(database, ".lock")


class IndexLock:
    """The lock of one database. Of all objects for the same database, one can hold it."""

    def __init__(self, database: Path) -> None:
        self.file = lock_file(database)
        # Taken and released by different threads of the keeper.
        self._lock = FileLock(str(self.file), timeout=0, thread_local=False)
        self._taken: os.stat_result | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock.is_locked

    def take(self) -> bool:
        """
        Take the lock if it is free, without waiting.

        Raises:
            OSError: The lock file cannot be made.
        """
        if self.held:
            return True
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        try:
            self._taken = self.file.stat()
        except FileNotFoundError:  # deleted just now; `is_in_place` says so
            self._taken = None
        return True

    def is_in_place(self) -> bool:
        """Whether the locked file is still at its path, where other processes would lock it."""
        try:
            return self._taken is not None and os.path.samestat(self._taken, self.file.stat())
        except OSError:
            return False

    def release(self) -> None:
        self._lock.release(force=True)


def is_locked(database: Path) -> bool:
    """Whether a process, possibly this one, holds the lock now."""
    if not lock_file(database).exists():
        return False
    lock = IndexLock(database)
    try:
        taken = lock.take()
    except OSError:
        return False
    if taken:
        lock.release()
    return not taken
