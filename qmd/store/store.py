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

    Reads run on the calling thread; writes run one after the other.

    A store stays with the database file that it was opened with. While that file is not at its
    path, every use raises DatabaseReplacedError. For another file at the path, open another store.
    """

    @property
    def path(self) -> Path:
        """The absolute path of the database."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether every write is refused."""
        ...

    @property
    def timeout_s(self) -> float:
        """Seconds that a write waits for a lock that another process holds."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """
        A reader inside one snapshot. Keep the block short: old data cannot be removed meanwhile.

        Raises:
            DatabaseReplacedError: The database is not at its path any more.
            RequestEndedError: The request was cancelled, possibly in the middle of the block; see
                `qmd.system.cancellation`.
        """
        ...

    def write(self, function: Callable[[Writer], T]) -> T:
        """
        Run ``function(writer)`` in one transaction, and wait for it.

        Raises:
            ReadOnlyError, DatabaseBusyError, DiskFullError: The transaction was rolled back.
            DatabaseReplacedError: The database is not at its path any more; nothing was written.
        """
        ...

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """
        Queue a write that may be lost, and return at once.

        The write is dropped if the database is read-only or closed, if another process holds the
        lock for more than a moment, or if the disk is full.

        Args:
            written: Called after the commit.
        """
        ...

    def merge_full_text(self) -> None:
        """
        Merge what many writes have left in full text, so that searches look into fewer places.

        It takes many short transactions, between which others can write.
        """
        ...

    def compact(self) -> None:
        """Give unused space back to the disk."""
        ...

    def engine(self) -> str:
        """The name and version of the library that stores the data."""
        ...

    @property
    def damage_hint(self) -> str:
        """A sentence that tells a person what to do if this database is damaged."""
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
        """Whether another database is at the path now, which another store can open."""
        ...

    def abandon(self) -> bool:
        """
        Close the store for good, so that its path can be opened again.

        Every later use raises DatabaseReplacedError. While something reads from the store, nothing
        is done.

        Returns:
            Whether the store is closed.
        """
        ...

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        ...
