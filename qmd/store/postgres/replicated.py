"""
A database on a server whose reads go to a streaming replica while that is up to date.

`ReplicaWatch` says whether it is: what it has replayed, and how far it is behind.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import ConfigError, DatabaseUnreachableError, StoreError
from qmd.store.postgres.library import Connection, Error, connect, one, translate
from qmd.store.postgres.processes import ChangeFeed, SharedLock
from qmd.store.postgres.store import PostgresStore
from qmd.store.scoped import scoped_store
from qmd.store.store import LOCK_TIMEOUT_S, ReplicaState, Store

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer
    from qmd.values.access import AccessScope
    from qmd.values.location import ServerDatabase

_log = logging.getLogger(__name__)
#: Seconds between two looks at both servers.
_LOOK_S = 1.0
#: A replica that is further behind, or did not answer for so long, is not asked.
MOST_LAG_S = 10.0
_SILENCE_S = 5.0

_PRIMARY = (
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, system_identifier"
    " FROM pg_control_system()"
)
_REPLICA = (
    "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, system_identifier"
    " FROM pg_control_system() WHERE pg_is_in_recovery()"
)


class ReplicaWatch:
    """
    A thread that looks at a primary server and its replica every second.

    Positions are bytes of the write-ahead log. The lag is the age of the newest position of the
    primary that the replica has replayed, by the clock of this process: the servers' clocks do not
    count, and an idle primary is no lag.
    """

    def __init__(self, primary: ServerDatabase, replica: ServerDatabase) -> None:
        self._primary = primary
        self._replica = replica
        self._stop = threading.Event()
        self._connections: dict[ServerDatabase, Connection] = {}
        self._samples: deque[tuple[float, int]] = deque(maxlen=600)
        self._identity: int | None = None  # of the primary's data
        self._looked_at = monotonic()
        self._is_another = False
        self._needed = 0
        self._replayed = 0
        self._state = ReplicaState(None, "The replica was not asked yet.")
        self._was_usable = True  # at the look before
        self._thread = threading.Thread(target=self._run, name="qmd-replica", daemon=True)

    def start(self) -> None:
        """
        Look once, then regularly.

        Raises:
            ConfigError: The second server is no replica of the first.
        """
        self._look()
        if self._is_another:
            raise ConfigError(
                f"{self._replica} is no replica of {self._primary}.",
                hint="Name a streaming replica of the database, or leave out --db-read.",
            )
        self._log_change()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for a server that hangs is left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)
        if not self._thread.is_alive():
            for connection in self._connections.values():
                connection.close()

    @property
    def state(self) -> ReplicaState:
        """How far the replica is behind, or why it is not asked."""
        if monotonic() - self._looked_at > _SILENCE_S:
            return ReplicaState(None, f"The replica {self._replica} does not answer.")
        return self._state

    def need(self, position: int) -> None:
        """The replica may answer only from this position on."""
        self._needed = max(self._needed, position)

    def may_answer(self, replayed: Callable[[], int]) -> bool:
        """
        Whether the replica has all that it must have.

        ``replayed`` asks it how far it is; it is called only if the latest look is too old.
        """
        if self.state.problem is not None:
            return False
        if self._replayed < self._needed:
            self._replayed = max(self._replayed, replayed())
        return self._replayed >= self._needed

    def failed(self, error: StoreError) -> None:
        """Do not ask the replica before the next look."""
        self._state = ReplicaState(None, str(error))

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_S):
            self._look()
            self._log_change()

    def _look(self) -> None:
        before = monotonic()
        primary, primary_problem = self._ask(self._primary, _PRIMARY)
        replica, problem = self._ask(self._replica, _REPLICA)
        if primary is not None:
            position, self._identity = primary
            self._samples.append((before, position))
        lag_s = None
        self._is_another = problem is None and (
            replica is None or self._identity not in (None, replica[1])
        )
        if self._is_another:
            problem = f"{self._replica} is no replica of {self._primary}."
        elif replica is not None:
            self._replayed = max(self._replayed, replica[0])
            lag_s = self._lag_s(replica[0]) if primary is not None else None
            if lag_s is not None and lag_s > MOST_LAG_S:
                problem = f"The replica {self._replica} is {lag_s:.0f} s behind; it is not asked."
        self._looked_at = monotonic()
        self._state = ReplicaState(lag_s, problem, primary_problem)

    def _log_change(self) -> None:
        """One line when the replica is not asked any more, and one when it is again."""
        problem = self._state.problem
        if problem is not None and self._was_usable:
            _log.warning("the replica is not asked: %s", problem)
        elif problem is None and not self._was_usable:
            _log.info("the replica is asked again")
        self._was_usable = problem is None

    def _lag_s(self, replayed: int) -> float:
        """Seconds since the primary was where the replica is now."""
        if self._samples[-1][1] <= replayed:
            return 0.0
        seen_s = [at for at, position in self._samples if position <= replayed]
        return round(self._samples[-1][0] - (seen_s[-1] if seen_s else self._samples[0][0]), 1)

    def _ask(
        self, location: ServerDatabase, statement: str
    ) -> tuple[tuple[int, int] | None, str | None]:
        """The answer of a server, None if it has none; or a sentence that says what is wrong."""
        try:
            connection = self._connections.get(location)
            if connection is None or connection.closed:
                connection = self._connections[location] = connect(location, read_only=True)
            return connection.execute(statement).fetchone(), None
        except Error as error:
            self._forget(location)
            return None, str(translate(error, location))
        except StoreError as error:
            return None, str(error)

    def _forget(self, location: ServerDatabase) -> None:
        connection = self._connections.pop(location, None)
        if connection is not None:
            connection.close()


def position_of(connection: Connection) -> int:
    """Where the log of a primary server ends."""
    return int(one(connection, _PRIMARY)[0])


def replayed_by(connection: Connection) -> int:
    """How far a replica has replayed the log; 0 if it is none."""
    row = connection.execute(_REPLICA).fetchone()
    return int(row[0]) if row is not None and row[0] is not None else 0


T = TypeVar("T")


#: What the primary does for it; only it knows what other processes have embedded.
_OF_PRIMARY = frozenset(
    {"process_name", "embedding_claims", "merge_full_text", "gather_common_words"}
    | {"index_vectors", "compact", "shrink"}
)
#: What any of both servers can say.
_OF_EITHER = frozenset({"engine", "damage_hint", "require_current", "is_superseded"})


class ReplicatedStore:
    """
    One database on a primary server and its replica. Thread-safe.

    Writes, locks and notifications are the primary's. Reads go to the replica once it has
    replayed what this process has written, or was told of; until then, and while the replica
    fails, to the primary. While the primary fails, the replica answers all reads.
    """

    def __init__(
        self,
        location: ServerDatabase,
        replica: ServerDatabase,
        *,
        create: bool = False,
        read_only: bool = False,
        timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """
        One of both servers must answer now.

        Raises:
            ConfigError: The second server is no replica of the first.
            StoreError: As `PostgresStore`.
        """
        self.location = location
        self.replica_location = replica
        self.read_only = read_only
        self.timeout_s = timeout_s
        self._create = create
        self._name = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._closed = False
        self._primary: PostgresStore | None = None
        self._replica: PostgresStore | None = None
        self._watch = ReplicaWatch(location, replica)
        try:
            self._watch.start()
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open the primary, or if that is impossible, the replica."""
        try:
            primary = self._require_primary()
        except DatabaseUnreachableError:
            self._require_replica()
        else:
            self._note_position(primary)

    def _require_primary(self) -> PostgresStore:
        """Raises DatabaseUnreachableError: It could not be opened since this process began."""
        with self._lock:
            self._require_open()
            if self._primary is None:
                self._primary = PostgresStore(
                    self.location,
                    create=self._create,
                    read_only=self.read_only,
                    timeout_s=self.timeout_s,
                    writer_name=self._name,
                )
            return self._primary

    def _require_replica(self) -> PostgresStore:
        with self._lock:
            self._require_open()
            if self._replica is None:
                self._replica = PostgresStore(
                    self.replica_location, read_only=True, timeout_s=self.timeout_s
                )
            return self._replica

    # -- reading -----------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[Reader]:
        """As `PostgresStore.reading`, from the server that may answer."""
        return self._reading(None)

    @contextmanager
    def _reading(self, scope: AccessScope | None) -> Iterator[Reader]:
        with ExitStack() as stack:
            yield self._enter(stack, scope)

    def _enter(self, stack: ExitStack, scope: AccessScope | None) -> Reader:
        if self._may_ask_replica():
            try:
                return stack.enter_context(self._require_replica().reading_for(scope))
            except StoreError as error:  # also where it has not replayed a migration yet
                self._watch.failed(error)
        try:
            return stack.enter_context(self._require_primary().reading_for(scope))
        except DatabaseUnreachableError:
            return stack.enter_context(self._require_replica().reading_for(scope))

    def _may_ask_replica(self) -> bool:
        def replayed() -> int:
            return self._require_replica().read(lambda reader: replayed_by(reader.connection))

        try:
            return self._watch.may_answer(replayed)
        except StoreError as error:
            self._watch.failed(error)
            return False

    def _note_position(self, primary: PostgresStore) -> None:
        """The replica may answer when it has replayed all that the primary has now."""
        with suppress(StoreError), primary.reading() as reader:
            self._watch.need(position_of(reader.connection))

    def replica_state(self) -> ReplicaState:
        """As `qmd.store.store.Store.replica_state`."""
        return self._watch.state

    # -- writing -----------------------------------------------------------------------

    def write(self, function: Callable[[Writer], T]) -> T:
        """As `PostgresStore.write`; later reads see it."""
        primary = self._require_primary()
        result = primary.write(function)
        self._note_position(primary)
        return result

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """As `qmd.store.store.Store.write_soon`; what it writes may be seen late."""
        with suppress(StoreError):
            self._require_primary().write_soon(function, written)

    read = Store.read
    require_writable = Store.require_writable

    def shared_lock(self, purpose: str) -> SharedLock:
        """As `qmd.store.store.Store.shared_lock`; who takes it sees what its last holder wrote."""
        return SharedLock(self.location, purpose, self._catch_up)

    def _catch_up(self) -> None:
        with suppress(StoreError):
            self._note_position(self._require_primary())

    def is_locked(self, purpose: str) -> bool:
        """As `qmd.store.store.Store.is_locked`; nobody holds a lock of a server that is gone."""
        try:
            return self._require_primary().is_locked(purpose)
        except DatabaseUnreachableError:
            return False

    def change_feed(self) -> ChangeFeed:
        """As `qmd.store.store.Store.change_feed`; later reads see the changes."""
        return ChangeFeed(self.location, self._name, self._catch_up)

    def has_process(self, name: str) -> bool:
        """As `qmd.store.store.Store.has_process`; true while the primary cannot be asked."""
        try:
            return self._require_primary().has_process(name)
        except DatabaseUnreachableError:
            return True

    def scoped(self, scope: AccessScope) -> Store:
        """As `qmd.store.store.Store.scoped`."""
        return scoped_store(self, scope, self._reading)

    # -- upkeep ------------------------------------------------------------------------

    def __getattr__(self, name: str) -> object:
        if name in _OF_EITHER:
            return getattr(self._primary or self._require_replica(), name)
        if name not in _OF_PRIMARY:
            raise AttributeError(f"a {type(self).__name__} has no {name!r}")
        return getattr(self._require_primary(), name)

    # -- opening and closing -----------------------------------------------------------

    def abandon(self) -> bool:
        """Never: no other database can be at the URL."""
        return False

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("The database was closed.", hint="Open it again.")

    def close(self) -> None:
        """Wait for the running write, then close all connections. May be called twice."""
        with self._lock:
            self._closed = True
            stores = [each for each in (self._primary, self._replica) if each is not None]
        self._watch.stop()
        for store in stores:
            store.close()
