"""
Cancel work whose result is of no use: a request that timed out, or whose client has left.

A thread cannot be stopped from outside. So the caller runs the work inside `Cancellation.active`,
and the work checks for a cancellation: the statements inside `Store.reading` can be interrupted,
and every read of the database and every long Python loop calls `check`. Changes of files run inside
`uninterrupted`, so they are finished. Writes to the database run on a thread that no cancellation
reaches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from qmd.errors import RequestEndedError

T = TypeVar("T")


class Cancellation:
    """Cancels one piece of work. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interrupts: list[Callable[[], None]] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        """
        Interrupt the statements that run now; every later `check` raises.

        This may miss a statement that begins at the same moment. A caller that must be sure repeats
        the call until the work has ended.
        """
        self.is_cancelled = True
        with self._lock:
            for interrupt in self._interrupts:
                interrupt()

    def active(self) -> AbstractContextManager[None]:
        """Let this cancellation cancel the work of the block."""
        return in_block(_current, self)

    def add(self, interrupt: Callable[[], None]) -> None:
        """Call ``interrupt`` at every `cancel` from now on."""
        with self._lock:
            self._interrupts.append(interrupt)

    def remove(self, interrupt: Callable[[], None]) -> None:
        """Undo `add`. Afterwards ``interrupt`` is not running and will not be called again."""
        with self._lock:
            self._interrupts.remove(interrupt)


_current: ContextVar[Cancellation | None] = ContextVar("qmd_cancellation", default=None)


def check() -> None:
    """Raise RequestEndedError if the work of this thread was cancelled."""
    current = _current.get()
    if current is not None and current.is_cancelled:
        raise RequestEndedError


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call ``interrupt`` if the work is cancelled while the block runs."""
    current = _current.get()
    if current is None:
        yield
        return
    current.add(interrupt)
    try:
        yield
    finally:
        current.remove(interrupt)


def uninterrupted() -> AbstractContextManager[None]:
    """Let the block run to its end, even if the work is cancelled."""
    return in_block(_current, None)


@contextmanager
def in_block(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Let a variable of this thread's work have a value in the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
