"""An open database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer

T = TypeVar("T")


class Store(Protocol):
    """
    One open database. Thread-safe.

    Reads run on the calling thread, writes one after the other.

    It stays with the database that it was opened with. While that is deleted, moved or replaced,
    every use raises DatabaseReplacedError; another one at the path needs another store.
    """

    @property
    def path(self) -> Path:
        """Where the database is, an absolute path."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether every write is refused."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long a write waits for a lock that another process holds."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """
        A reader inside one snapshot; keep it short, for it holds back what others clean up.

        Raises:
            DatabaseReplacedError: The database is not at its path any more.
            RequestEndedError: In the middle of the block, too: see `qmd.system.cancellation`.
        """
        ...

    def write(self, function: Callable[[Writer], T]) -> T:
        """
        Run ``function(writer)`` in one transaction, and wait for it.

        Raises:
            ReadOnlyError, DatabaseBusyError, DiskFullError: Rolled back, nothing changed.
            DatabaseReplacedError: The database is not at its path any more: nothing was kept.
        """
        ...

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """
        Queue a write whose loss does not matter: nobody waits for it. ``written`` is called
        once it is committed.

        It is dropped where the database is read-only or closed, where another process holds
        the lock for more than a moment, and where the disk is full.
        """
        ...

    def compact(self) -> None:
        """Give unused space back to the disk."""
        ...

    def engine(self) -> str:
        """What stores, with its version."""
        ...

    @property
    def damage_hint(self) -> str:
        """What a person does when this database is damaged."""
        ...

    def require_writable(self) -> None:
        """Raises ReadOnlyError."""
        ...

    def require_current(self) -> None:
        """
        Raises:
            DatabaseReplacedError: The path does not name the database that was opened.
        """
        ...

    @property
    def is_superseded(self) -> bool:
        """Whether the path names a database that another store can open instead of this one."""
        ...

    def abandon(self) -> bool:
        """
        Close it for good, so that its path can be opened anew; every later use raises
        DatabaseReplacedError. False, and nothing is done, while something reads from it.
        """
        ...

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        ...
