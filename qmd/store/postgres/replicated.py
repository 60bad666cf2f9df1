"""A database on a server whose reads go to a streaming replica while that is up to date."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import DatabaseUnreachableError, StoreError
from qmd.store.postgres.changes import ChangeFeed
from qmd.store.postgres.locks import SharedLock
from qmd.store.postgres.replica import ReplicaWatch, position_of, replayed_by
from qmd.store.postgres.store import PostgresStore
from qmd.store.scoped_store import scoped_store
from qmd.store.store import LOCK_TIMEOUT_S, ReplicaState, Store

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer
    from qmd.values.access import AccessScope
    from qmd.values.location import ServerDatabase

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
            with self._require_replica().reading() as reader:
                return replayed_by(reader.connection)

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
