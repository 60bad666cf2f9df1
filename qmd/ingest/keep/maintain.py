"""
What the one keeper of a database does: reconcile, watch, index what changed, and again.
"""

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

#: Are the collections, and their roots, still the same?
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
    """A collection under care; ``due`` is when it is next walked as a whole."""

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
    One term of office. ``indexed`` is called when documents came or changed; ``still_leads`` says
    whether the right to index is still this process's.
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
        self._kept: dict[int, _MaintainedCollection] = {}
        self._settings: list[tuple[object, ...]] | None = None
        self._next_tick = 0.0
        self._next_progress = 0.0
        self._next_record = 0.0
        self._failures = 0
        self._has_news = True

    def run(self) -> None:
        """
        Until told to stop, or somebody removed the lock. Whatever goes wrong is logged, told and
        tried again.

        Raises:
            DatabaseReplacedError: What is to be kept is another file now.
        """
        try:
            while not self._stop.is_set() and self._still_leads():
                self._guarded_turn()
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
            for kept in self._kept.values():
                self._end_watch(kept)
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
        for kept in self._kept.values():
            kept.due = 0.0
        self._notice("keeper", problem)
        self._stop.wait(min(LONGEST_RETRY_S, 0.5 * 2**self._failures))

    def _turn(self) -> None:
        now = monotonic()
        if now >= self._next_tick:
            self._next_tick = now + min(TICK_S, self._options.poll_s)
            self._look_around()
        kept = min(self._kept.values(), key=lambda kept: kept.due, default=None)
        if kept is not None and kept.due <= now:
            self._reconcile(kept)
        else:
            wait_s = self._next_tick - now if kept is None else min(self._next_tick, kept.due) - now
            for number, paths in self._changes.take(max(0.0, wait_s)).items():
                if number in self._kept:
                    self._apply(self._kept[number], paths)
        self._tell_if_synced()

    # -- what is there to keep ---------------------------------------------------------

    def _look_around(self) -> None:
        """Collections come and go by other processes' hands, roots with their disks."""
        with self._store.reading() as reader:
            settings = reader.collections.definitions()
            known = reader.collections.all() if settings != self._settings else None
        if known is not None:
            self._settings = [*settings]
            self._take_over({collection.id: collection for collection in known})
        for kept in self._kept.values():
            identity = root_identity(Path(kept.collection.path))
            if identity != kept.identity:
                kept.identity = identity
                self._end_watch(kept)
                self._require(kept)
            elif isinstance(kept.watch, PollingWatch) and kept.watch.next_look <= monotonic():
                try:
                    kept.watch.look()
                except (NotFoundError, InputError):
                    self._require(kept)
        self._note_watches()
        self._state.record(self._store, len(self._changes))

    def _take_over(self, now: dict[int, Collection]) -> None:
        for number, kept in list(self._kept.items()):
            collection = now.get(number)
            if collection is not None and _is_same(collection, kept.collection):
                kept.collection = collection  # it may have another name
            else:
                self._end_watch(kept)
                self._notice(kept.topic, None)
                del self._kept[number]
        for number, collection in now.items():
            if number not in self._kept:
                identity = root_identity(Path(collection.path))
                self._kept[number] = _MaintainedCollection(collection, identity)

    def _note_watches(self) -> None:
        watches = [kept.watch for kept in self._kept.values()]
        polled = any(isinstance(watch, PollingWatch) for watch in watches)
        self._state.watch = "polling" if polled else "native" if self._options.watch else "off"
        self._state.directories_watched = sum(
            watch.directories for watch in watches if watch is not None
        )

    def _start_watch(self, kept: _MaintainedCollection) -> None:
        """Before the collection is walked, so that nothing falls in between."""
        if kept.watch is not None and kept.watch.stale:
            self._end_watch(kept)
        if self._options.watch and kept.watch is None:
            kept.watch, notice = self._watching.start(kept.collection)
            self._notice(f"{kept.topic} watch", notice)

    def _end_watch(self, kept: _MaintainedCollection) -> None:
        if kept.watch is not None:
            kept.watch.close()
            kept.watch = None
            self._notice(f"{kept.topic} watch", None)

    def _require(self, kept: _MaintainedCollection) -> None:
        kept.due = 0.0
        kept.failures = 0

    # -- indexing ----------------------------------------------------------------------

    def _reconcile(self, kept: _MaintainedCollection) -> None:
        """Walk the whole collection."""

        def run() -> None:
            self._start_watch(kept)
            self._indexer(kept, self._progress).run()

        if self._attempt(kept, run):
            kept.due = monotonic() + self._options.reconcile_s

    def _apply(self, kept: _MaintainedCollection, paths: set[str]) -> None:
        """Look at the paths that changed."""
        if any(path.rpartition("/")[2] in IGNORE_FILES for path in paths):
            self._end_watch(kept)  # it leaves out what the rules leave out
            self._require(kept)
        elif "" in paths or len(paths) > MANY_PATHS:
            self._require(kept)
        else:
            self._state.files_pending = len(paths)
            if not self._attempt(kept, lambda: self._indexer(kept, None).run_paths(paths)):
                kept.due = min(kept.due, monotonic() + TICK_S)

    def _attempt(self, kept: _MaintainedCollection, run: Callable[[], object]) -> bool:
        """Whether it went well; if not, the collection is walked later, and ever more rarely."""
        self._state.indexing = True
        try:
            run()
        except CollectionNotFoundError:
            self._settings = None  # removed meanwhile
            kept.due = monotonic() + TICK_S
            return False
        except (NotFoundError, InputError) as error:
            kept.failures += 1
            kept.due = monotonic() + min(LONGEST_RETRY_S, 2.0**kept.failures)
            problem = f"{kept.collection.name}: {error.with_hint}"
            self._notice(kept.topic, problem)
            return False
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
        kept.failures = 0
        self._notice(kept.topic, None)
        self._notice("parser", parse_workers.problem())
        self._has_news = True
        self._indexed()
        return True

    def _indexer(
        self, kept: _MaintainedCollection, progress: ProgressCallback | None
    ) -> CollectionIndexer:
        return CollectionIndexer(
            self._store,
            kept.collection,
            progress=progress or self._heed_stop,
            changed=self._events.publisher(kept.collection.name),
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

    # -- telling -----------------------------------------------------------------------

    def _tell_if_synced(self) -> None:
        """The index is as the disk when nothing waits and nothing has failed."""
        now = monotonic()
        if (
            self._has_news
            and not len(self._changes)
            and all(kept.due > now and not kept.failures for kept in self._kept.values())
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
