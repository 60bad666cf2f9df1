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
from qmd.ingest.keep.follower import IndexFollower
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.lock import IndexLock
from qmd.ingest.keep.maintain import KeeperOptions, Maintenance
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import Store

_log = logging.getLogger(__name__)

LOCK_RETRY_S = 10.0


class Keeper:
    """
    A thread that takes the lock of a database and then indexes, watches and embeds.

    It publishes each change on the event bus. While another process holds the lock, it publishes
    the changes of that process, about a second later. Only `stop` ends the thread.
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
        lock = IndexLock(store.path)
        follower = IndexFollower(store, self._events)
        while not self._stop.is_set():
            try:
                store.require_current()
                if not lock.take():
                    self._follow(follower)
                    self._stop.wait(self._options.takeover_s)
                    continue
            except DatabaseReplacedError:
                return
            except OSError as error:
                problem = f"The lock {lock.file} cannot be taken: {error.strerror or error}."
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

    def _maintain(self, store: Store, lock: IndexLock) -> None:
        state = self.state
        state.forget_record()
        state.leader = True
        state.embeds = self._options.embed
        background = None
        if self._options.embed:
            background = BackgroundEmbedder(store, self._events, state, self._models)
            background.start()
            self._background = background
        maintenance = Maintenance(
            store,
            self._events,
            state,
            self._changes,
            self._options,
            self._stop,
            background.wake if background else lambda: None,
            lock.is_in_place,
        )
        try:
            maintenance.run()
        finally:
            self._background = None
            if background is not None:
                background.stop()
            state.watch = "off"
            try:
                state.record(store)
            except DatabaseReplacedError:
                pass  # no process reads the record of a replaced file
            except QmdError as error:
                _log.warning("the end of keeping was not noted: %s", error)
