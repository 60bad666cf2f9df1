"""Maintain the index while this process holds the lock: walk, watch and index what changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from qmd.errors import (
    CollectionNotFoundError,
    DatabaseReplacedError,
    InputError,
    NotFoundError,
    QmdError,
)
from qmd.ingest import parse_workers
from qmd.ingest.collection_indexer import CollectionIndexer
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.background_embedding import RunStopped
from qmd.ingest.keep.changed_paths import ChangedPaths
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.watch import POLL_S, FolderWatch, PollingWatch, WatchFactory, root_identity
from qmd.ingest.rules import IGNORE_FILES
from qmd.system import clock
from qmd.values import Collection, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.store import Store

_log = logging.getLogger(__name__)

#: How often collections and their roots are compared with before.
TICK_S = 1.0
#: For more paths than this, walking the whole collection is cheaper.
MANY_PATHS = 500
PROGRESS_S = 0.2
LONGEST_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """``polling``: do without file events. Times in seconds."""

    watch: bool = True
    embed: bool = True
    polling: bool = False
    poll_s: float = POLL_S
    reconcile_s: float = 600.0
    takeover_s: float = 1.0


@dataclass(slots=True)
class _MaintainedCollection:
    """A maintained collection; ``due`` is when it is next walked as a whole."""

    collection: Collection
    identity: tuple[object, ...] | None
    due: float = 0.0
    failures: int = 0
    watch: FolderWatch | None = None

    @property
    def topic(self) -> str:
        return f"collection {self.collection.id}"


class Maintenance:
    """
    The work of a process while it holds the lock.

    ``indexed`` is called when documents came or changed; ``still_leads`` says whether this process
    still holds the lock.
    """

    def __init__(
        self,
        store: Store,
        events: EventBus,
        state: KeeperState,
        changes: ChangedPaths,
        options: KeeperOptions,
        stop: threading.Event,
        indexed: Callable[[], None],
        still_leads: Callable[[], bool],
    ) -> None:
        self._store = store
        self._events = events
        self._state = state
        self._changes = changes
        self._options = options
        self._stop = stop
        self._indexed = indexed
        self._still_leads = still_leads
        self._watching = WatchFactory(changes, polling=options.polling, poll_s=options.poll_s)
        self._maintained: dict[int, _MaintainedCollection] = {}
        self._settings: list[tuple[object, ...]] | None = None
        self._next_tick = 0.0
        self._next_progress = 0.0
        self._next_record = 0.0
        self._failures = 0
        self._has_news = True

    def run(self) -> None:
        """
        Work until the stop, or until somebody removes the lock. Errors are logged, published and
        tried again.

        Raises:
            DatabaseReplacedError: The database file was replaced.
        """
        try:
            while not self._stop.is_set() and self._still_leads():
                self._guarded_turn()
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
            for maintained in self._maintained.values():
                self._end_watch(maintained)
            self._watching.close()

    def _guarded_turn(self) -> None:
        try:
            self._turn()
        except RunStopped:
            return
        except DatabaseReplacedError:
            raise
        except QmdError as error:
            problem = error.with_hint
            _log.warning("keeping the index failed: %s", error)
        except Exception as error:  # noqa: BLE001 - logged, told and tried again
            problem = f"Keeping the index failed: {type(error).__name__}; the log tells more."
            _log.exception("keeping the index failed")
        else:
            self._failures = 0
            self._notice("keeper", None)
            return
        self._state.indexing = False
        self._failures += 1
        self._settings = None
        for maintained in self._maintained.values():
            maintained.due = 0.0
        self._notice("keeper", problem)
        self._stop.wait(min(LONGEST_RETRY_S, 0.5 * 2**self._failures))

    def _turn(self) -> None:
        now = monotonic()
        if now >= self._next_tick:
            self._next_tick = now + min(TICK_S, self._options.poll_s)
            self._look_around()
        maintained = min(
            self._maintained.values(), key=lambda maintained: maintained.due, default=None
        )
        if maintained is not None and maintained.due <= now:
            self._reconcile(maintained)
        else:
            wait_s = (
                self._next_tick - now
                if maintained is None
                else min(self._next_tick, maintained.due) - now
            )
            for number, paths in self._changes.take(max(0.0, wait_s)).items():
                if number in self._maintained:
                    self._apply(self._maintained[number], paths)
        self._tell_if_synced()

    # -- collections and roots ---------------------------------------------------------

    def _look_around(self) -> None:
        """Notice collections that other processes add or remove, and roots that come and go."""
        with self._store.reading() as reader:
            settings = reader.collections.definitions()
            changed = reader.collections.all() if settings != self._settings else None
        if changed is not None:
            self._settings = [*settings]
            self._take_over({collection.id: collection for collection in changed})
        for maintained in self._maintained.values():
            identity = root_identity(Path(maintained.collection.path))
            if identity != maintained.identity:
                maintained.identity = identity
                self._end_watch(maintained)
                self._require(maintained)
            elif (
                isinstance(maintained.watch, PollingWatch)
                and maintained.watch.next_look <= monotonic()
            ):
                try:
                    maintained.watch.look()
                except (NotFoundError, InputError):
                    self._require(maintained)
        self._note_watches()
        self._state.record(self._store, len(self._changes))

    def _take_over(self, now: dict[int, Collection]) -> None:
        for number, maintained in list(self._maintained.items()):
            collection = now.get(number)
            if collection is not None and _is_same(collection, maintained.collection):
                maintained.collection = collection  # it may have another name
            else:
                self._end_watch(maintained)
                self._notice(maintained.topic, None)
                del self._maintained[number]
        for number, collection in now.items():
            if number not in self._maintained:
                identity = root_identity(Path(collection.path))
                self._maintained[number] = _MaintainedCollection(collection, identity)

    def _note_watches(self) -> None:
        watches = [maintained.watch for maintained in self._maintained.values()]
        polled = any(isinstance(watch, PollingWatch) for watch in watches)
        self._state.watch = "polling" if polled else "native" if self._options.watch else "off"
        self._state.directories_watched = sum(
            watch.directories for watch in watches if watch is not None
        )

    def _start_watch(self, maintained: _MaintainedCollection) -> None:
        """Watch before the collection is walked, so that no change is missed in between."""
        if maintained.watch is not None and maintained.watch.stale:
            self._end_watch(maintained)
        if self._options.watch and maintained.watch is None:
            maintained.watch, notice = self._watching.start(maintained.collection)
            self._notice(f"{maintained.topic} watch", notice)

    def _end_watch(self, maintained: _MaintainedCollection) -> None:
        if maintained.watch is not None:
            maintained.watch.close()
            maintained.watch = None
            self._notice(f"{maintained.topic} watch", None)

    def _require(self, maintained: _MaintainedCollection) -> None:
        maintained.due = 0.0
        maintained.failures = 0

    # -- indexing ----------------------------------------------------------------------

    def _reconcile(self, maintained: _MaintainedCollection) -> None:
        """Walk the whole collection."""

        def run() -> None:
            self._start_watch(maintained)
            self._indexer(maintained, self._progress).run()

        if self._attempt(maintained, run):
            maintained.due = monotonic() + self._options.reconcile_s

    def _apply(self, maintained: _MaintainedCollection, paths: set[str]) -> None:
        """Look at the paths that changed."""
        if any(path.rpartition("/")[2] in IGNORE_FILES for path in paths):
            self._end_watch(maintained)  # it leaves out what the rules leave out
            self._require(maintained)
        elif "" in paths or len(paths) > MANY_PATHS:
            self._require(maintained)
        else:
            self._state.files_pending = len(paths)
            if not self._attempt(
                maintained, lambda: self._indexer(maintained, None).run_paths(paths)
            ):
                maintained.due = min(maintained.due, monotonic() + TICK_S)

    def _attempt(self, maintained: _MaintainedCollection, run: Callable[[], object]) -> bool:
        """Whether the run succeeded; if not, the collection is walked later, ever more rarely."""
        self._state.indexing = True
        try:
            run()
        except CollectionNotFoundError:
            self._settings = None  # removed meanwhile
            maintained.due = monotonic() + TICK_S
            return False
        except (NotFoundError, InputError) as error:
            maintained.failures += 1
            maintained.due = monotonic() + min(LONGEST_RETRY_S, 2.0**maintained.failures)
            problem = f"{maintained.collection.name}: {error.with_hint}"
            self._notice(maintained.topic, problem)
            return False
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
        maintained.failures = 0
        self._notice(maintained.topic, None)
        self._notice("parser", parse_workers.problem())
        self._has_news = True
        self._indexed()
        return True

    def _indexer(
        self, maintained: _MaintainedCollection, progress: ProgressCallback | None
    ) -> CollectionIndexer:
        return CollectionIndexer(
            self._store,
            maintained.collection,
            progress=progress or self._heed_stop,
            changed=self._events.publisher(maintained.collection.name),
        )

    def _heed_stop(self, tick: Progress) -> None:
        if self._stop.is_set():
            raise RunStopped

    def _progress(self, tick: Progress) -> None:
        self._heed_stop(tick)
        if tick.total is not None:
            self._state.files_pending = tick.total - tick.done
        now = monotonic()
        if now >= self._next_progress and (tick.total is None or tick.done < tick.total):
            self._next_progress = now + PROGRESS_S
            self._events.publish(Event("indexing", clock.now(), done=tick.done, total=tick.total))
        if now >= self._next_record and tick.stage == "index":
            self._next_record = now + TICK_S
            self._state.record(self._store, len(self._changes))

    # -- publishing --------------------------------------------------------------------

    def _tell_if_synced(self) -> None:
        """The index is as the disk when nothing waits and nothing has failed."""
        now = monotonic()
        if (
            self._has_news
            and not len(self._changes)
            and all(
                maintained.due > now and not maintained.failures
                for maintained in self._maintained.values()
            )
        ):
            self._has_news = False
            self._note_watches()
            self._events.publish(Event("synced", self._state.synced()))

    def _notice(self, topic: str, problem: str | None) -> None:
        if self._state.notice(topic, problem) and problem is not None:
            _log.warning("%s", problem)
            self._events.publish(Event("problem", clock.now(), message=problem))


def _is_same(one: Collection, two: Collection) -> bool:
    return (one.path, one.pattern, one.ignore) == (two.path, two.pattern, two.ignore)
