"""
Knows which process keeps the index of a database, and how much older the index is than the disk.

A keeper has its state in memory, and writes it into the database as a record that other processes
read. With a database on a server it does so now and then even if nothing has changed, because a
process that hangs keeps its lock, and on another machine nobody sees that it hangs.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout

from qmd.errors import DatabaseReplacedError, QmdError
from qmd.ingest.events import Event, EventBus
from qmd.records import dataclass
from qmd.store.sql.shared import KEEPER
from qmd.system import clock, running
from qmd.system.user_dirs import lock_beside, lock_mode
from qmd.values import Freshness, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.store import Reader, SharedLock, Store
    from qmd.store.store import ReplicaState


_log = logging.getLogger(__name__)

#: The form of a keeper's record. Programs before 2.0 named none.
RECORD_FORM = 2

#: Seconds after which a keeper writes its record again, with a database on a server.
HEARTBEAT_S = 10.0
#: Seconds without a record after which people are told so.
SILENCE_S = 60.0
#: Seconds between two progress events, and between two records of the progress.
PROGRESS_S, RECORD_S = 0.2, 1.0


class KeeperState:
    """
    The state of a keeper. Any thread may read and write it.

    Attributes:
        leader: Whether this process holds the lock.
        last_sync: When the index was last known to equal the disk, ISO 8601 UTC.
        files_pending: How many files of the running indexing are not indexed yet.
        embeds: Whether missing vectors are made.
    """

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._lock = threading.Lock()
        self.leader = False
        self.last_sync: str | None = None
        self.indexing = False
        self.files_pending = 0
        self.watch: Literal["native", "polling", "off"] = "off"
        self.embeds = False
        self._notices: dict[str, str] = {}
        self._recorded: str | None = None
        self._next_heartbeat = 0.0

    def synced(self) -> str:
        """Record that the index equals the disk now; returns the time, ISO 8601 UTC."""
        self.last_sync = clock.now()
        return self.last_sync

    def tell(self, topic: str, problem: str | None, cause: QmdError | None = None) -> None:
        """
        Record, log and publish the problem of a topic, a sentence; None ends it.

        Of a ``cause`` the log has the error itself, because it leaves out what a model server said:
        that may repeat a note.
        """
        with self._lock:
            is_new = problem != self._notices.pop(topic, None)
            if problem is not None:
                self._notices[topic] = problem
        if is_new and problem is not None:
            if cause is None:
                _log.warning("%s", problem)
            else:
                _log.warning("%s failed: %s", topic, cause)
            self._events.publish(Event("problem", clock.now(), message=problem))

    @property
    def notices(self) -> tuple[str, ...]:
        """The current problems, as sentences."""
        with self._lock:
            return tuple(self._notices.values())

    @property
    def embedding(self) -> bool:
        """Whether missing vectors are made, now or as soon as there are any."""
        with self._lock:
            return self.embeds and "embedding" not in self._notices

    def values(self, waiting: int) -> dict[str, Any]:
        """The record; ``waiting``: how many changed paths are not indexed yet."""
        return {
            "pid": os.getpid(),
            "machine": socket.gethostname(),
            "form": RECORD_FORM,
            "last_sync": self.last_sync,
            "files_pending": self.files_pending + waiting,
            "indexing": self.indexing,
            "watch": self.watch,
            "embeds": self.embedding,
            "notices": self.notices,
        }

    def record(self, store: Store, waiting: int = 0) -> None:
        """Write the record for other processes, if it has changed or a heartbeat is due."""
        values = self.values(waiting)
        text = json.dumps(values, ensure_ascii=False)
        beats = not isinstance(store.location, Path)
        if text != self._recorded or (beats and monotonic() >= self._next_heartbeat):
            record = json.dumps(values | {"at": clock.now()}, ensure_ascii=False)
            store.write(lambda writer: writer.meta.put(KEEPER, record))
            self._recorded = text
            self._next_heartbeat = monotonic() + HEARTBEAT_S

    def record_end(self, store: Store) -> None:
        """Write for other processes that this one keeps the index no more."""
        self.watch = "off"
        self.try_to_record(store)

    def try_to_record(self, store: Store) -> None:
        """As `record`, where nothing can be done about a failure."""
        try:
            self.record(store)
        except DatabaseReplacedError:
            pass  # no process reads the record of a replaced file
        except QmdError as error:
            _log.warning("what keeps the index was not noted: %s", error)

    def forget_record(self) -> None:
        """Write the record next time in any case: another process may have replaced it."""
        self._recorded = None


@dataclass()
class ProgressTeller:
    """
    Tells how far an indexing is: by the state, by events, and by the record for others.

    ``_waiting`` returns how many changed paths wait besides.
    """

    _store: Store
    _events: EventBus
    _state: KeeperState
    _waiting: Callable[[], int]
    _next_progress: float = 0.0
    _next_record: float = 0.0
    has_published: bool = False

    def __call__(self, tick: Progress) -> None:
        if tick.total is not None:
            self._state.files_pending = tick.total - tick.done
        now = monotonic()
        if now >= self._next_progress and (tick.total is None or tick.done < tick.total):
            self._next_progress = now + PROGRESS_S
            self.has_published = True
            self._events.publish(Event("indexing", clock.now(), done=tick.done, total=tick.total))
        if now >= self._next_record:
            self._next_record = now + RECORD_S
            self._state.record(self._store, self._waiting())


@contextmanager
def keeping(
    store: Store,
    events: EventBus,
    state: KeeperState,
    *,
    lock_to_keep: IndexLock | SharedLock | None = None,
) -> Iterator[ProgressCallback]:
    """
    Be the process with the lock while the block indexes.

    So every face of every process says that it is indexed, and how far that is. If another
    process has the lock, that one tells what it does itself.

    Args:
        state: Tells it in this process. Its ``watch`` is "off" if no keeper follows.
        lock_to_keep: The lock, for a keeper that follows: if the block has ended well it stays
            taken, and the record says that the index is kept. None to release the lock.

    Yields:
        What the block calls with its progress.
    """
    lock = lock_to_keep or lock_of(store)
    try:
        state.leader = lock.take()
    except OSError as error:  # the keeper that follows tells people
        _log.debug("the lock cannot be taken: %s", error)
    if not state.leader:
        yield lambda tick: None
        return
    state.indexing = True
    tell = ProgressTeller(store, events, state, lambda: 0)
    goes_on = False
    try:
        state.record(store)
        yield tell
        goes_on = lock_to_keep is not None
    finally:
        state.indexing = False
        state.files_pending = 0
        if goes_on:
            state.try_to_record(store)
        else:
            state.record_end(store)
            state.leader = False
            lock.release()
        if tell.has_published:
            events.publish(Event("indexing", clock.now(), done=1, total=1))


def read_freshness(
    store: Store,
    local: KeeperState | None = None,
    waiting: int = 0,
    *,
    embeddings_pending: int | None = None,
) -> Freshness:
    """
    How far the index is behind the disk.

    Args:
        local: The state of the keeper in this process; None without one.
        waiting: How many changed paths this keeper has not indexed yet.
        embeddings_pending: How many distinct texts have no vectors; None to count them.
    """
    with store.reading() as reader:
        text = reader.meta.get(KEEPER)
        if embeddings_pending is None:
            embeddings_pending = reader.upkeep.count_contents_waiting()
        last_run = reader.collections.last_indexed_at()
    replica = store.replica_state()
    if local is not None and local.leader:
        record, is_alive = local.values(waiting) | {"at": clock.now()}, True
        last_sync = _later(local.last_sync, last_run if local.last_sync else None)
    else:
        record = parse_record(text)
        is_alive = _is_alive(store, record)
        # One of several collections may have been walked since; the keeper says when all were.
        is_behind = is_alive and record.get("last_sync") is None
        last_sync = None if is_behind else _later(record.get("last_sync"), last_run)
    older = _first_versions(record) if is_alive else []
    kept = record if is_alive and not older else {}
    keeper = _name_of(store, kept)
    heard_of = kept.get("at") if keeper is not None else None
    return Freshness(
        last_sync=last_sync,
        files_pending=kept.get("files_pending", 0),
        embeddings_pending=embeddings_pending,
        indexing=kept.get("indexing", False),
        leader=local is not None and local.leader,
        watch=kept.get("watch", "off"),
        notices=(
            *_problems_of_servers(replica),
            *_silence(keeper, heard_of),
            *older,
            *kept.get("notices", ()),
        ),
        embedding=kept.get("embeds", False),
        replica_lag_s=None if replica is None else replica.lag_s,
        keeper=keeper,
        keeper_heard_of=heard_of,
    )


def activity(store: Store, reader: Reader) -> tuple[bool, bool]:
    """Whether a process indexes just now, and whether it makes missing vectors, by its record."""
    record = parse_record(reader.meta.get(KEEPER))
    is_alive = _is_alive(store, record)
    return is_alive and record.get("indexing", False), is_alive and record.get("embeds", False)


def _is_alive(store: Store, record: dict[str, Any]) -> bool:
    """Whether the process of the record runs; one that was killed could not record its end."""
    is_at_it = record.get("watch", "off") != "off" or record.get("indexing", False)
    return is_at_it and is_kept(store)


def _name_of(store: Store, record: dict[str, Any]) -> str | None:
    """The keeper, for a database on a server; of a file everybody is on the same machine."""
    if isinstance(store.location, Path) or "machine" not in record:
        return None
    return f"process {record.get('pid')} on {record['machine']}"


def _silence(keeper: str | None, heard_of: str | None) -> list[str]:
    """A sentence if the keeper has not been heard of for long."""
    if keeper is None or heard_of is None:
        return []
    seconds = clock.now_ns() / 1e9 - clock.parse(heard_of).timestamp()
    if seconds < SILENCE_S:
        return []
    return [
        f"The index is kept by {keeper}, which has not been heard of for {round(seconds)} s. If it"
        " hangs, end it there: another process takes over."
    ]


def _first_versions(record: dict[str, Any]) -> list[str]:
    """A sentence if the keeper is older than 2.0: it keeps its lock beside a migrated database."""
    if not record or "form" in record:
        return []
    pid = record.get("pid")
    if isinstance(pid, int) and running.is_alive(pid):
        return [
            f"The index is kept by an older qmd, process {pid}, which cannot read this database any"
            " more. End it: another process takes over."
        ]
    # The process of the record has ended, and another one took its lock, but could write no record.
    return [
        "The index is kept by a process of an older qmd, which cannot read this database any more."
        " End the servers and AI clients that use that version: another process takes over."
    ]


def is_kept_by_older(store: Store) -> bool:
    """Whether the lock is that of a program before 2.0, which brings nothing up to date."""
    record = store.read(lambda reader: parse_record(reader.meta.get(KEEPER)))
    return _is_alive(store, record) and bool(_first_versions(record))


def _problems_of_servers(replica: ReplicaState | None) -> list[str]:
    if replica is None:
        return []
    problems = []
    if replica.problem is not None:
        problems.append(f"{replica.problem.rstrip('.')}. The primary server answers alone.")
    if replica.primary_problem is not None:
        problems.append(f"{replica.primary_problem.rstrip('.')}. Nothing can be written.")
    return problems


def unknown_freshness(problem: str) -> Freshness:
    """The freshness of a database that cannot be read; ``problem`` is a sentence."""
    return Freshness(
        last_sync=None,
        files_pending=0,
        embeddings_pending=0,
        indexing=False,
        leader=False,
        notices=(problem,),
    )


def parse_record(text: str | None) -> dict[str, Any]:
    """The record in a text; empty if there is none, or if another version wrote it."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def keeper_pid(store: Store) -> int | None:
    """The id of the process that holds the lock; None if no process does."""
    if not is_kept(store):
        return None
    pid = store.read(lambda reader: parse_record(reader.meta.get(KEEPER)).get("pid"))
    return pid if isinstance(pid, int) else None


def _later(*times: str | None) -> str | None:
    """The latest of these times (ISO 8601 UTC); None if all are None."""
    return max(filter(None, times), default=None)


# --- the lock of the process that indexes -----------------------------------------------
# Of all processes with a database only one holds it. The operating system releases it when that
# process ends, even if it is killed. So does the server of a database, whose processes may be on
# several machines.


def lock_of(store: Store) -> IndexLock | SharedLock:
    """The lock of the database of a store: a file beside a file, or a lock of the server."""
    location = store.location
    return IndexLock(location) if isinstance(location, Path) else store.shared_lock("index")


def is_kept(store: Store) -> bool:
    """Whether a process, possibly this one, holds the lock of the database now."""
    location = store.location
    return is_locked(location) if isinstance(location, Path) else store.is_locked("index")


def lock_name(store: Store) -> str:
    """The lock, in the words of a message."""
    location = store.location
    return f"the lock {lock_file(location)}" if isinstance(location, Path) else "its lock"


def lock_file(database: Path) -> Path:
    """The path of the lock file, ``<database>.lock``, the same for all links to the database."""
    return lock_beside(database, ".lock")


class IndexLock:
    """The lock of one database. Of all objects for the same database, one can hold it."""

    def __init__(self, database: Path) -> None:
        self.file = lock_file(database)
        # Taken and released by different threads of the keeper.
        mode = lock_mode(database)
        self._lock = FileLock(str(self.file), timeout=0, mode=mode, thread_local=False)
        self._taken: os.stat_result | None = None
        self._is_new = False

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock.is_locked

    def take(self) -> bool:
        """
        Take the lock if it is free, without waiting.

        Raises:
            OSError: The lock file cannot be made.
        """
        if self.held:
            return True
        is_new = not self.file.exists()
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        self._is_new = is_new
        try:
            self._taken = self.file.stat()
        except FileNotFoundError:  # deleted just now; `is_in_place` says so
            self._taken = None
        return True

    def is_in_place(self) -> bool:
        """Whether the locked file is still at its path, where other processes would lock it."""
        try:
            return self._taken is not None and os.path.samestat(self._taken, self.file.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock. Its file goes if this object has made it."""
        if self.held and self._is_new and self.is_in_place():
            # Who has just opened the file finds by `is_in_place` that it is no longer the lock.
            with suppress(OSError):  # Windows deletes no open file
                self.file.unlink()
        self._lock.release(force=True)


def is_locked(database: Path) -> bool:
    """Whether a process, possibly this one, holds the lock now."""
    if not lock_file(database).exists():
        return False
    lock = IndexLock(database)
    try:
        taken = lock.take()
    except OSError:
        return False
    if taken:
        lock.release()
    return not taken
