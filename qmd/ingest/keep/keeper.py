"""The background thread that keeps the index of a database up to date, if it gets the lock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from qmd.errors import DatabaseReplacedError, QmdError, StoreError
from qmd.ingest import parse_workers
from qmd.ingest.events import EventBus
from qmd.ingest.keep import background
from qmd.ingest.keep.freshness import IndexLock, KeeperState, lock_of
from qmd.ingest.keep.loop import ChangeListener, IndexFollower, Loop, LoopStopped
from qmd.ingest.keep.maintain import KeeperOptions, Maintenance
from qmd.ingest.keep.watch import ChangedPaths

if TYPE_CHECKING:
    from qmd.store import Reader, SharedLock, Store

_log = logging.getLogger(__name__)

LOCK_RETRY_S = 10.0


class Keeper:
    """
    A thread that takes the lock of a database and then indexes, watches and embeds.

    It publishes each change on the event bus, and those of other processes: for a database on a
    server at once, for a file about a second later while another process holds the lock. Only
    `stop` ends the thread.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        events: EventBus,
        models: background.EmbedderProvider,
        options: KeeperOptions | None = None,
        *,
        lock: IndexLock | SharedLock | None = None,
    ) -> None:
        """
        Args:
            store: Returns the open store; called again after the database file was replaced.
            models: Opens the embedding models.
            lock: The lock of the database, if this process has it already.
        """
        self._lock_to_take_over = lock
        self.state = KeeperState(events)
        self._store = store
        self._events = events
        self._models = models
        self._options = options or KeeperOptions()
        self._changes = ChangedPaths(on_burst=parse_workers.workers.warm_up)
        self._kept: Store | None = None
        self._loop: Loop | None = None
        self._background: tuple[Loop, ...] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the thread and return at once. May be called twice."""
        with self._lock:
            if self._loop is None:
                self._loop = Loop(
                    "qmd-keeper",
                    self._keep_database,
                    "The index is not kept",
                    partial(self.state.tell, "database"),
                    every_s=0.0,
                    retry_s=(self._options.takeover_s, self._options.takeover_s),
                    # (A lambda: another database file has other changes.)
                    interrupt=lambda: self._changes.wake(),  # noqa: PLW0108
                    ends_with=(),  # while no file is at the path, it is tried again
                )
                self._loop.start()

    def stop(self) -> None:
        """
        End all threads of the keeper, so that another process can take over. May be called twice.

        A running write is finished first, which takes a second at most.
        """
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        lock, self._lock_to_take_over = self._lock_to_take_over, None
        if lock is not None:
            lock.release()

    def __enter__(self) -> Keeper:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def is_leader(self) -> bool:
        """Whether this process holds the lock and indexes."""
        return self.state.leader

    @property
    def waiting(self) -> int:
        """How many changed paths are not indexed yet."""
        return len(self._changes)

    def embed_soon(self) -> None:
        """Wake the threads that embed and read pictures, if this process has them."""
        for loop in self._background or ():
            loop.wake()

    def _keep_database(self) -> None:
        """
        Keep the database until the keeper stops or another file is at its path.

        Raises:
            StoreError: It cannot be opened.
        """
        loop = self._loop
        if loop is None:
            raise LoopStopped
        store = self._store()
        store.read(_nothing)
        if store is not self._kept:  # the state of another database file does not apply
            self._kept = store
            self.state = KeeperState(self._events)
            self._changes = ChangedPaths(on_burst=parse_workers.workers.warm_up)
        self.state.tell("database", None)
        feed = store.change_feed()
        if feed is None:
            self._take_turns(store, IndexFollower(store, self._events), loop.stopping)
            return
        listener = ChangeListener(feed, self._events, self.embed_soon)
        listener.start()
        try:
            with self._in_background(store):  # all processes share this work
                self._take_turns(store, None, loop.stopping)
        finally:
            listener.stop()

    def _take_turns(
        self, store: Store, follower: IndexFollower | None, stopping: threading.Event
    ) -> None:
        """Maintain the index when the lock is free, else follow it."""
        lock, self._lock_to_take_over = self._lock_to_take_over or lock_of(store), None

        def turn() -> None:
            store.read(_nothing)
            try:
                is_leader = lock.take()
            except OSError as error:
                raise StoreError(_problem_of_lock(lock, error)) from error
            self.state.tell("lock", None)
            if is_leader:
                try:
                    self._maintain(store, lock, stopping)
                finally:
                    self.state.leader = False
                    lock.release()
            elif follower is not None:
                try:
                    follower.look()
                except DatabaseReplacedError:
                    raise
                except QmdError as error:  # searches report it; the keeper tries again
                    _log.debug("the index cannot be followed: %s", error)

        loop = Loop(
            "qmd-keeper",
            turn,
            "The index is not kept",
            partial(self.state.tell, "lock"),
            every_s=self._options.takeover_s,
            retry_s=(LOCK_RETRY_S, LOCK_RETRY_S),
            stopping=stopping,
        )
        loop.wake()
        try:
            loop.run()
        finally:
            lock.release()  # it may have been taken over, and no turn begun

    @contextmanager
    def _in_background(self, store: Store) -> Iterator[None]:
        """Embed and read pictures in the block, if nothing around it does so already."""
        if self._background is not None:
            yield
            return
        options, state = self._options, self.state
        loops: list[Loop] = []
        if options.embed:
            loops.append(background.BackgroundEmbedder(store, self._events, state, self._models))
        if options.ocr is not None:
            loops.append(background.BackgroundOcr(store, self._events, state, options.ocr))
        for loop in loops:
            loop.start()
        self._background = tuple(loops)
        try:
            yield
        finally:
            self._background = None
            for loop in loops:
                loop.stop()

    def _maintain(
        self, store: Store, lock: IndexLock | SharedLock, stopping: threading.Event
    ) -> None:
        state = self.state
        state.forget_record()
        state.leader = True
        state.embeds = self._options.embed
        gathering = background.gathering_loop(store)
        gathering.start()

        def wake() -> None:
            gathering.wake()
            self.embed_soon()

        maintenance = Maintenance(
            store,
            self._events,
            state,
            self._changes,
            self._options,
            stopping,
            wake,
            lock.is_in_place,
        )
        try:
            with self._in_background(store):
                maintenance.run()
        finally:
            gathering.stop()
            state.record_end(store)


def _nothing(_: Reader) -> None:
    """What a store is read for to see that the database is there, and can be read."""


def _problem_of_lock(lock: IndexLock | SharedLock, error: OSError) -> str:
    name = lock.file if isinstance(lock, IndexLock) else "of the database"
    return f"The lock {name} cannot be taken: {error.strerror or error}."
