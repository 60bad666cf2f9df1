"""The work of the process that holds the lock: walk the folders, watch them, index changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from qmd.errors import CollectionNotFoundError, InputError, NotFoundError
from qmd.ingest import parse_workers
from qmd.ingest.collection_indexer import CollectionIndexer
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.freshness import KeeperState, ProgressTeller
from qmd.ingest.keep.loop import Loop, LoopStopped
from qmd.ingest.keep.watch import (
    POLL_S,
    ChangedPaths,
    FolderWatch,
    PollingWatch,
    WatchFactory,
    root_identity,
)
from qmd.ingest.rules import IGNORE_FILES
from qmd.values import Collection, Progress, ProgressCallback
from qmd.values.pictures import Recogniser

if TYPE_CHECKING:
    from qmd.store import Store

#: Seconds between two looks at the list of collections and at their root folders.
TICK_S = 1.0
#: So many walks in a row make way for changes, so that files that are written all the time keep no
#: collection from being walked.
MOST_INTERRUPTED = 5
#: After a failure the work is tried again, ever more rarely, but at least this often (seconds).
LONGEST_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """
    Attributes:
        watch: React to changes at once; if False, only walk the folders every ``reconcile_s``.
        embed: Make missing vectors.
        ocr: Reads the text in pictures; None to read none.
        polling: Compare the folders every ``poll_s`` seconds instead of using file events.
        reconcile_s: Seconds between two walks through a whole collection.
        takeover_s: Seconds between two attempts to take the lock.
    """

    watch: bool = True
    embed: bool = True
    ocr: Recogniser | None = None
    polling: bool = False
    poll_s: float = POLL_S
    reconcile_s: float = 600.0
    takeover_s: float = 1.0


@dataclass(slots=True)
class _MaintainedCollection:
    """
    Attributes:
        identity: Device and inode of the root folder; None while it cannot be read.
        due: When the collection is next walked as a whole, on the monotonic clock.
        failures: How many attempts in a row have failed.
        interrupted: How many walks in a row have made way for changes.
    """

    collection: Collection
    identity: tuple[object, ...] | None
    due: float = 0.0
    failures: int = 0
    interrupted: int = 0
    watch: FolderWatch | None = None

    @property
    def topic(self) -> str:
        return f"collection {self.collection.id}"


class _WalkInterrupted(Exception):
    """A walk that has stored nothing yet makes way for changes; it begins anew after them."""


class Maintenance:
    """
    Keeps the index of a database up to date while this process holds the lock.

    Args:
        changes: The changed paths, which the watching threads add.
        indexed: Called after documents were added or changed.
        still_leads: Returns whether this process still holds the lock.
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
        self._tell_progress = ProgressTeller(store, events, state, lambda: len(changes))
        self._has_news = True

    def run(self) -> None:
        """Work until ``stop`` is set, the lock file is removed or the database file is replaced."""
        loop = Loop(
            "qmd-keeper",
            self._guarded_turn,
            "Keeping the index failed",
            partial(self._state.tell, "keeper"),
            every_s=0.0,  # a turn waits for changes
            retry_s=(TICK_S, LONGEST_RETRY_S),
            stopping=self._stop,
        )
        try:
            loop.run()
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
            for maintained in self._maintained.values():
                self._end_watch(maintained)
            self._watching.close()

    def _guarded_turn(self) -> None:
        if not self._still_leads():
            raise LoopStopped
        try:
            self._turn()
        except Exception:  # whatever has failed, the next turn begins with all collections
            self._state.indexing = False
            self._settings = None
            for maintained in self._maintained.values():
                maintained.due = 0.0
            raise

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
            self._take_changes(max(0.0, wait_s))
        self._tell_if_synced()

    def _take_changes(self, wait_s: float) -> None:
        """Wait for the end of a burst of changes, and index them."""
        for collection_id, paths in self._changes.take(wait_s).items():
            if collection_id in self._maintained:
                self._apply(self._maintained[collection_id], paths)

    # -- collections and roots ---------------------------------------------------------

    def _look_around(self) -> None:
        """Notice collections that were added or removed, and root folders that come and go."""
        with self._store.reading() as reader:
            settings = reader.collections.definitions()
            changed = reader.collections.all() if settings != self._settings else None
        if changed is not None:
            self._settings = [*settings]
            self._maintain_only({collection.id: collection for collection in changed})
        for maintained in self._maintained.values():
            identity = root_identity(Path(maintained.collection.path))
            if identity != maintained.identity:
                maintained.identity = identity
                self._end_watch(maintained)
                self._require_walk(maintained)
            elif (
                isinstance(maintained.watch, PollingWatch)
                and maintained.watch.next_look <= monotonic()
            ):
                try:
                    maintained.watch.look()
                except (NotFoundError, InputError):
                    self._require_walk(maintained)
        self._note_watches()
        self._state.record(self._store, len(self._changes))

    def _maintain_only(self, collections: dict[int, Collection]) -> None:
        """Maintain these collections from now on, by id, and no others."""
        for collection_id, maintained in list(self._maintained.items()):
            collection = collections.get(collection_id)
            if collection is not None and _has_same_rules(collection, maintained.collection):
                maintained.collection = collection  # it may have another name
            else:
                self._end_watch(maintained)
                self._state.tell(maintained.topic, None)
                del self._maintained[collection_id]
        for collection_id, collection in collections.items():
            if collection_id not in self._maintained:
                identity = root_identity(Path(collection.path))
                self._maintained[collection_id] = _MaintainedCollection(collection, identity)

    def _note_watches(self) -> None:
        polled = any(isinstance(each.watch, PollingWatch) for each in self._maintained.values())
        self._state.watch = "polling" if polled else "native" if self._options.watch else "off"

    def _start_watch(self, maintained: _MaintainedCollection) -> None:
        """Watch before the collection is walked, so that no change is missed in between."""
        if maintained.watch is not None and maintained.watch.stale:
            self._end_watch(maintained)
        if self._options.watch and maintained.watch is None:
            maintained.watch, notice = self._watching.start(maintained.collection)
            self._state.tell(f"{maintained.topic} watch", notice)

    def _end_watch(self, maintained: _MaintainedCollection) -> None:
        if maintained.watch is not None:
            maintained.watch.close()
            maintained.watch = None
            self._state.tell(f"{maintained.topic} watch", None)

    def _require_walk(self, maintained: _MaintainedCollection) -> None:
        """Walk the whole collection in the next turn."""
        maintained.due = 0.0
        maintained.failures = 0

    # -- indexing ----------------------------------------------------------------------

    def _reconcile(self, maintained: _MaintainedCollection) -> None:
        """Walk the whole collection, unless changes come first."""

        def heed(tick: Progress) -> None:
            self._progress(tick)
            may_wait = tick.stage == "scan" and maintained.interrupted < MOST_INTERRUPTED
            if may_wait and self._changes.is_ready():
                raise _WalkInterrupted

        def run() -> None:
            self._start_watch(maintained)
            self._indexer(maintained, heed).run()

        try:
            is_done = self._attempt(maintained, run)
        except _WalkInterrupted:
            maintained.interrupted += 1
            self._take_changes(0.0)
            return
        maintained.interrupted = 0
        if is_done:
            maintained.due = monotonic() + self._options.reconcile_s

    def _apply(self, maintained: _MaintainedCollection, paths: set[str]) -> None:
        """Index the paths that changed, or walk the whole collection if that is necessary."""
        if "" in paths or any(path.rpartition("/")[2] in IGNORE_FILES for path in paths):
            self._end_watch(maintained)  # which folders are watched depends on the ignore files
            self._require_walk(maintained)
        else:
            self._state.files_pending = len(paths)
            if not self._attempt(
                maintained, lambda: self._indexer(maintained, None).run_paths(paths)
            ):
                maintained.due = min(maintained.due, monotonic() + TICK_S)

    def _attempt(self, maintained: _MaintainedCollection, run: Callable[[], object]) -> bool:
        """
        Run an indexing of a collection, and return whether it succeeded.

        After a failure the collection is walked again later, after ever longer pauses.
        """
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
            self._state.tell(maintained.topic, problem)
            return False
        finally:
            self._state.indexing = False
            self._state.files_pending = 0
        maintained.failures = 0
        self._state.tell(maintained.topic, None)
        self._state.tell("parser", parse_workers.problem())
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
            raise LoopStopped

    def _progress(self, tick: Progress) -> None:
        self._heed_stop(tick)
        self._tell_progress(tick)

    # -- publishing --------------------------------------------------------------------

    def _tell_if_synced(self) -> None:
        """Publish that the index equals the disk, if no path waits and no collection has failed."""
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


def _has_same_rules(collection: Collection, earlier: Collection) -> bool:
    return (collection.path, collection.pattern, collection.ignore) == (
        earlier.path,
        earlier.pattern,
        earlier.ignore,
    )
