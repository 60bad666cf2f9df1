"""
Cancel work that nobody waits for: a request whose time is up, or whose client has left.

A thread cannot be stopped from outside. So the caller runs the work inside `Cancellation.active`,
and the work checks it: `Store.reading` lets its statements be interrupted, every read of the
database calls `check` first, and so does every Python loop that may take long. A change of a file
is finished inside `uninterrupted`; a write of the database runs on a thread that no cancellation
reaches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from qmd.errors import RequestEndedError


class Cancellation:
    """Ends one piece of work. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interrupts: list[Callable[[], None]] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        """
        Interrupt the statements that run now; every later `check` raises.

        A statement that begins in the same moment is missed: whoever must be sure repeats the
        call until the work has ended.
        """
        self.is_cancelled = True
        with self._lock:
            for interrupt in self._interrupts:
                interrupt()

    @contextmanager
    def active(self) -> Iterator[None]:
        """The block is work that this cancellation ends."""
        with _set(self):
            yield

    def add(self, interrupt: Callable[[], None]) -> None:
        with self._lock:
            self._interrupts.append(interrupt)

    def remove(self, interrupt: Callable[[], None]) -> None:
        """When it returns, ``interrupt`` does not run and will not be called again."""
        with self._lock:
            self._interrupts.remove(interrupt)


_current: ContextVar[Cancellation | None] = ContextVar("qmd_cancellation", default=None)


def check() -> None:
    """Raises RequestEndedError: The work that this thread does was cancelled."""
    current = _current.get()
    if current is not None and current.is_cancelled:
        raise RequestEndedError


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """``interrupt`` ends what the block is doing when its work is cancelled."""
    current = _current.get()
    if current is None:
        yield
        return
    current.add(interrupt)
    try:
        yield
    finally:
        current.remove(interrupt)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """The block runs to its end, whatever is cancelled meanwhile."""
    with _set(None):
        yield


@contextmanager
def _set(cancellation: Cancellation | None) -> Iterator[None]:
    before = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(before)
