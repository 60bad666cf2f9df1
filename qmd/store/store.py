"""An open database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from qmd.store.changes import ChangeFeed
    from qmd.store.embedding_claims import EmbeddingClaims
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql.models import StoredModel
    from qmd.values.access import AccessScope
    from qmd.values.location import DatabaseLocation

T = TypeVar("T")

#: Seconds that a write waits for a lock that another process holds, unless told otherwise.
LOCK_TIMEOUT_S = 15.0


class ReplicaState(NamedTuple):
    """
    The replica that answers reads.

    Attributes:
        lag_s: Seconds that it is behind; None if that is unknown.
        problem: A sentence that says why the primary server answers; None if the replica does.
        primary_problem: A sentence that says why nothing can be written.
    """

    lag_s: float | None
    problem: str | None = None
    primary_problem: str | None = None


class SharedLock(Protocol):
    """A lock that one of all processes with a database holds, on whichever machine."""

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, as far as it is known here."""
        ...

    def take(self) -> bool:
        """
        Take the lock if it is free, without waiting.

        Raises:
            StoreError: The server cannot be reached.
        """
        ...

    def is_in_place(self) -> bool:
        """Whether the lock is still held where other processes would take it."""
        ...

    def release(self) -> None: ...


class Store(Protocol):
    """
    One open database. Thread-safe.

    Reads run on the calling thread; writes run one after the other.

    A store stays with the database file that it was opened with. While that file is not at its
    path, every use raises DatabaseReplacedError. For another file at the path, open another store.
    """

    @property
    def location(self) -> DatabaseLocation:
        """The absolute path of the database file, or the database on a server."""
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

    def scoped(self, scope: AccessScope) -> Store:
        """
        This store as a client with a scope sees it: nothing outside its collections exists.

        It reads what is in the scope, and writes nothing but the client's own conversations: each
        other use of its `Writer` raises ScopeError. It needs no closing, and lives as long as this
        store.
        """
        ...

    def merge_full_text(self) -> None:
        """
        Merge what many writes have left in full text, so that searches look into fewer places.

        It takes many short transactions, between which others can write.
        """
        ...

    def gather_common_words(self, most_s: float | None = None) -> int:
        """
        Compute what makes searches for very common words fast, if there are many documents.

        It takes many short transactions, between which others can write, and goes on where an
        earlier call ended.

        Args:
            most_s: End after about this many seconds; None when all is done.

        Returns:
            How many words are left, at least 1; 0 if nothing is left to do.
        """
        ...

    def index_vectors(self) -> None:
        """
        Make the index that searches of very many vectors need, if there is none.

        It may take minutes, in which others can write.
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

    def shared_lock(self, purpose: str) -> SharedLock:
        """
        A lock of this database; all processes that name the same ``purpose`` mean the same lock.

        Only a database on a server has such locks. Processes with a file lock files beside it.
        """
        ...

    def is_locked(self, purpose: str) -> bool:
        """Whether any process holds a `shared_lock`."""
        ...

    def replica_state(self) -> ReplicaState | None:
        """How far the replica is behind that answers reads; None without a replica."""
        ...

    def change_feed(self) -> ChangeFeed | None:
        """
        What tells at once which documents other processes change; None with a file.

        Whoever has a file compares `identities` now and then. The caller closes the feed.
        """
        ...

    def process_name(self) -> str:
        """
        A name of this process that no other process with the database has or will have.

        From the first call on, until the store is closed or the process ends, `has_process` is
        true of it for all of them, on whichever machine.

        Raises:
            StoreError: The server cannot be reached.
        """
        ...

    def has_process(self, name: str) -> bool:
        """Whether a process that `process_name` named is still there."""
        ...

    def embedding_claims(self, model: StoredModel) -> EmbeddingClaims:
        """Hands out the chunks to embed with a model. The caller closes it."""
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
