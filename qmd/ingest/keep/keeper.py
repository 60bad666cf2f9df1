"""The background thread that keeps the index of a database up to date, if it gets the lock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from qmd.errors import DatabaseReplacedError, QmdError, StoreError
from qmd.ingest import parse_workers
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.background_embedding import BackgroundEmbedder, EmbedderProvider
from qmd.ingest.keep.changed_paths import ChangedPaths
from qmd.ingest.keep.common_words import BackgroundGathering
from qmd.ingest.keep.follower import ChangeListener, IndexFollower
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.lock import IndexLock, lock_of
from qmd.ingest.keep.maintain import KeeperOptions, Maintenance
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import Store
    from qmd.store.store import SharedLock

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
        models: EmbedderProvider,
        options: KeeperOptions | None = None,
    ) -> None:
        """
        Args:
            store: Returns the open store; called again after the database file was replaced.
            models: Opens the embedding models.
        """
        self.state = KeeperState()
        self._store = store
        self._events = events
        self._models = models
        self._options = options or KeeperOptions()
        self._changes = ChangedPaths(on_burst=parse_workers.workers.warm_up)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._background: BackgroundEmbedder | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the thread and return at once. May be called twice."""
        with self._lock:
            if self._thread is None:
                self._stop.clear()
                self._thread = threading.Thread(target=self._run, name="qmd-keeper", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """
        End all threads of the keeper, so that another process can take over. May be called twice.

        A running write is finished first, which takes a second at most.
        """
        with self._lock:
            thread, self._thread = self._thread, None
        self._stop.set()
        self._changes.wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

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

    @property
    def directories_watched(self) -> int:
        """How many directories the kernel watches; 0 if it does not watch single directories."""
        return self.state.directories_watched

    def embed_soon(self) -> None:
        """Wake the embedding thread, if this process has one."""
        background = self._background
        if background is not None:
            background.wake()

    def _run(self) -> None:
        kept: Store | None = None
        while not self._stop.is_set():
            try:
                store = self._store()
                store.require_current()
            except StoreError as error:  # logged where the database is opened
                self._tell("database", error.with_hint)
                self._stop.wait(self._options.takeover_s)
                continue
            except Exception as error:  # noqa: BLE001 - logged, and tried again
                _log.error("the keeper failed", exc_info=error)
                self._stop.wait(LOCK_RETRY_S)
                continue
            if store is not kept:  # the state of another database file does not apply
                kept = store
                self.state = KeeperState()
                self._changes = ChangedPaths(on_burst=parse_workers.workers.warm_up)
            self._tell("database", None)
            self._keep(store)

    def _keep(self, store: Store) -> None:
        """Keep one database file until the keeper stops or another file is at its path."""
        feed = store.change_feed()
        if feed is None:
            self._take_turns(store, IndexFollower(store, self._events))
            return
        listener = ChangeListener(feed, self._events, self.embed_soon)
        listener.start()
        self._start_embedding(store)  # all processes share this work
        try:
            self._take_turns(store, None)
        finally:
            self._stop_embedding()
            listener.stop()

    def _take_turns(self, store: Store, follower: IndexFollower | None) -> None:
        """Maintain the index when the lock is free, else follow it."""
        lock = lock_of(store)
        while not self._stop.is_set():
            try:
                store.require_current()
                if not lock.take():
                    if follower is not None:
                        self._follow(follower)
                    self._stop.wait(self._options.takeover_s)
                    continue
            except DatabaseReplacedError:
                return
            except (OSError, StoreError) as error:
                problem = _problem_of_lock(lock, error)
                if self._tell("lock", problem):
                    _log.warning("%s", problem)
                self._stop.wait(LOCK_RETRY_S)
                continue
            self._tell("lock", None)
            try:
                self._maintain(store, lock)
            except DatabaseReplacedError:
                return
            except Exception as error:  # noqa: BLE001 - logged, and tried again
                _log.error("the keeper failed", exc_info=error)
                self._stop.wait(LOCK_RETRY_S)
            finally:
                self.state.leader = False
                lock.release()

    def _tell(self, topic: str, problem: str | None) -> bool:
        """Record and publish a problem; None ends it. Returns whether that is new."""
        is_new = self.state.notice(topic, problem)
        if is_new and problem is not None:
            self._events.publish(Event("problem", clock.now(), message=problem))
        return is_new

    def _follow(self, follower: IndexFollower) -> None:
        try:
            follower.look()
        except DatabaseReplacedError:
            raise
        except QmdError as error:  # searches report it; the keeper tries again
            _log.debug("the index cannot be followed: %s", error)

    def _start_embedding(self, store: Store) -> None:
        if self._options.embed:
            background = BackgroundEmbedder(store, self._events, self.state, self._models)
            background.start()
            self._background = background

    def _stop_embedding(self) -> None:
        background, self._background = self._background, None
        if background is not None:
            background.stop()

    def _maintain(self, store: Store, lock: IndexLock | SharedLock) -> None:
        state = self.state
        state.forget_record()
        state.leader = True
        state.embeds = self._options.embed
        embeds_always = self._background is not None
        if not embeds_always:
            self._start_embedding(store)
        gathering = BackgroundGathering(store)
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
            self._stop,
            wake,
            lock.is_in_place,
        )
        try:
            maintenance.run()
        finally:
            gathering.stop()
            if not embeds_always:
                self._stop_embedding()
            state.watch = "off"
            try:
                state.record(store)
            except DatabaseReplacedError:
                pass  # no process reads the record of a replaced file
            except QmdError as error:
                _log.warning("the end of keeping was not noted: %s", error)


def _problem_of_lock(lock: IndexLock | SharedLock, error: OSError | StoreError) -> str:
    if isinstance(error, StoreError):
        return error.with_hint
    name = lock.file if isinstance(lock, IndexLock) else "of the database"
    return f"The lock {name} cannot be taken: {error.strerror or error}."
