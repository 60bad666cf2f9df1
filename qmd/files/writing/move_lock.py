"""Lets one move or undo at a time run, of all threads and processes with a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.errors import ConflictError
from qmd.system.user_dirs import lock_beside

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from qmd.values.location import DatabaseLocation

_held: ContextVar[BaseFileLock | None] = ContextVar("qmd_move", default=None)

#: Seconds that a move waits for another one.
WAIT_S = 30.0


@contextmanager
def one_move_at_a_time(database: DatabaseLocation) -> Iterator[None]:
    """
    Hold the lock ``<database>.moves.lock``; the system releases it if the process is killed.

    A move finds out first which notes link to the note, and then rewrites them at the paths that
    they had. If another move renamed one of them meanwhile, its links would be left behind.

    Raises:
        ConflictError: Another move or undo has held the lock for longer than `WAIT_S`.
        OSError: The lock file cannot be made.
    """
    lock = libraries.filelock.FileLock(str(lock_beside(database, ".moves.lock")))
    _acquire(lock)
    token = _held.set(lock)
    try:
        yield
    finally:
        _held.reset(token)
        lock.release()


def holds_move_lock() -> bool:
    """Whether this thread's work is a move or an undo that has the lock."""
    return _held.get() is not None


@contextmanager
def move_lock_given_up() -> Iterator[None]:
    """
    Let other moves have the lock in the block, which waits for a person.

    Raises:
        ConflictError: Another move still has the lock `WAIT_S` after the block.
    """
    lock = _held.get()
    assert lock is not None
    lock.release()
    try:
        yield
    finally:
        _acquire(lock)


def _acquire(lock: BaseFileLock) -> None:
    """Raises ConflictError."""
    try:
        lock.acquire(timeout=WAIT_S, poll_interval=0.01)
    except libraries.filelock.Timeout:
        raise ConflictError(
            "Another move or undo is still running; nothing was written.", hint="Try again later."
        ) from None
