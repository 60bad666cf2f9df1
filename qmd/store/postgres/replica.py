"""Whether a streaming replica may answer: what it has replayed, and how far it is behind."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from qmd.errors import ConfigError, StoreError
from qmd.store.postgres.library import Connection, Error, connect, one, translate
from qmd.store.store import ReplicaState

if TYPE_CHECKING:
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
