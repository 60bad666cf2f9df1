"""What stores of both engines do alike: one writer thread, and readers on other threads."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from qmd import libraries, store
from qmd.errors import ReadOnlyError, StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from qmd.store.reader import Reader, Writer
    from qmd.store.sql import Connection
    from qmd.store.store import Store
    from qmd.values.access import AccessScope

T = TypeVar("T")

#: How long a write that may be dropped waits for another process.
PATIENCE_S = 0.1


class ThreadedStore(ABC):
    """
    The half of `qmd.store.store.Store` that the engines share. Thread-safe.

    Reads run on the calling thread; writes run one after the other on a thread of the store, with
    one connection that is kept.
    """

    def __init__(self, *, read_only: bool, timeout_s: float) -> None:
        self.read_only = read_only
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._closed = False
        self._abandoned = False
        self._readers = 0
        self._writer: Connection | None = None
        self._thread: ThreadPoolExecutor | None = None

    # -- reading -----------------------------------------------------------------------

    @abstractmethod
    def reading_for(self, scope: AccessScope | None) -> AbstractContextManager[Reader]:
        """As `reading`, with the rows of a scope alone; None for no restriction."""

    def reading(self) -> AbstractContextManager[Reader]:
        """As `qmd.store.store.Store.reading`."""
        return self.reading_for(None)

    def scoped(self, scope: AccessScope) -> Store:
        """As `qmd.store.store.Store.scoped`. Its readers take turns with those of this store."""
        return store.scoped_store.scoped_store(self, scope, self.reading_for)

    # -- writing -----------------------------------------------------------------------

    @abstractmethod
    def _transaction(self, function: Callable[[Writer], T], patience_s: float) -> T:
        """Run ``function(writer)`` in a transaction; waits so long for one of another process."""

    @abstractmethod
    def _translating(self) -> AbstractContextManager[None]:
        """Raises what a library raises as a `QmdError`."""

    def write(self, function: Callable[[Writer], T]) -> T:
        """As `qmd.store.store.Store.write`."""
        return self._wait(self._submit(lambda: self._transaction(function, self.timeout_s)))

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """As `qmd.store.store.Store.write_soon`."""

        def run() -> None:
            try:
                with self._translating():
                    self._transaction(function, PATIENCE_S)
                    written()
            except StoreError as error:
                libraries.logging.getLogger(__name__).debug("a write was dropped: %s", error)

        try:
            self._submit(run)
        except StoreError:
            return

    def require_writable(self) -> None:
        """Raises ReadOnlyError."""
        if self.read_only:
            raise ReadOnlyError(
                "The database was opened read-only.", hint="Open it without read_only."
            )

    def _submit(self, job: Callable[[], T]) -> Future[T]:
        self.require_writable()
        with self._lock:
            self._require_open()
            if self._thread is None:
                # Only writers pay for the import (it brings logging with it).
                self._thread = libraries.futures.ThreadPoolExecutor(
                    1, thread_name_prefix="qmd-writer"
                )
            return self._thread.submit(job)

    def _wait(self, future: Future[T]) -> T:
        with self._translating():
            return future.result()

    # -- closing -----------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("The database is closed.")

    def abandon(self) -> bool:
        """As `qmd.store.store.Store.abandon`."""
        with self._lock:
            if self._readers:
                return False
            self._abandoned = True
        self.close()
        return True

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        with self._lock:
            self._closed = True
            idle = self._take_idle()
            thread, self._thread = self._thread, None
        for connection in idle:
            self._close_connection(connection)
        if thread is not None:
            thread.submit(self._close_writer)
            thread.shutdown(wait=True)
        self._release()

    @abstractmethod
    def _take_idle(self) -> list[Connection]:
        """All connections that wait for a reader, which are closed then. Called with the lock."""

    def _close_connection(self, connection: Connection) -> None:
        connection.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._close_connection(self._writer)
            self._writer = None

    @abstractmethod
    def _release(self) -> None:
        """Give up what is held besides connections; perhaps twice."""
