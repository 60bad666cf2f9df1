"""Lets one move or undo at a time run, of all threads and processes with a database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd.errors import ConflictError

#: Seconds that a move waits for another one.
WAIT_S = 30.0


@contextmanager
def one_move_at_a_time(database: Path, *, wait_s: float = WAIT_S) -> Iterator[None]:
    """
    Hold the lock ``<database>.moves.lock``; the system releases it if the process is killed.

    A move finds out first which notes link to the note, and then rewrites them at the paths that
    they had. If another move renamed one of them meanwhile, its links would be left behind.

    Raises:
        ConflictError: Another move or undo has held the lock for longer than ``wait_s``.
        OSError: The lock file cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(os.path.realpath(database) + ".moves.lock")
    try:
        lock.acquire(timeout=wait_s, poll_interval=0.01)
    except Timeout:
        raise ConflictError(
            "Another move or undo is still running; nothing was written.", hint="Try again later."
        ) from None
    try:
        yield
    finally:
        lock.release()
