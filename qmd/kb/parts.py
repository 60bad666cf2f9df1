"""The parts of an open knowledge base: the store, the models, and what is opened on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd import ingest, libraries, models, parse, system, values
from qmd.errors import ServerDatabaseError, StoreError
from qmd.models.choice import Backends, EmbedderChoice
from qmd.records import replace
from qmd.settings import Settings
from qmd.store import open_store
from qmd.system import clock
from qmd.system.session import current_face, current_session

if TYPE_CHECKING:
    from qmd.files.photos.exiftool import ExifTool
    from qmd.ingest.events import EventBus
    from qmd.ingest.keep.freshness import IndexLock, KeeperState
    from qmd.ingest.keep.keeper import Keeper
    from qmd.ingest.keep.loop import ChangeListener
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.store import SharedLock, Store, Writer
    from qmd.system.web import Web
    from qmd.values import Freshness
    from qmd.values.location import DatabaseLocation

T = TypeVar("T")
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

#: The public methods and properties that are open to every client: see `open_to_scopes`.
OPEN_TO_SCOPES: set[Callable[..., object]] = set()


def open_to_scopes(function: FunctionT) -> FunctionT:
    """
    Let clients call a method, or read a property, that have a token for some collections.

    Only for what reads nothing but ``self._store``, and writes nothing but by ``self._writer``:
    these are narrowed to the client's collections. All else is refused (`qmd.kb.scoped`).
    """
    OPEN_TO_SCOPES.add(function)
    return function


# No dataclass, which would take half a millisecond of each start.
class OpenParts:
    """
    The parts that belong to one database file. They are closed when another file takes its place.

    Attributes:
        exiftool: The running program that writes into photos; None until it is first needed.
        vectors: The vectors held in memory; None until the first search by meaning.
    """

    def __init__(self, store: Store, embedders: EmbedderChoice, backends: Backends) -> None:
        self.store = store
        self.embedders = embedders
        self.backends = backends
        self.exiftool: ExifTool | None = None
        self.vectors: VectorCache | None = None

    def close(self) -> None:
        """May be called twice."""
        if self.vectors is not None:
            self.vectors.close()
        if self.exiftool is not None:
            self.exiftool.close()
        self.store.close()


class Parts:
    """
    Base of the classes that make up `KnowledgeBase`: opens the parts and hands them out.

    When another file takes the place of the database, the parts are opened again for that file. So
    two accesses to ``self._store`` may give the stores of two files. A method that must work on
    one file throughout reads ``self._store`` once and keeps the result.
    """

    def __init__(self, store: Store, settings: Settings = Settings()) -> None:
        """For `KnowledgeBase.open`, which is how callers open a knowledge base."""
        if settings.embedder is not None:
            settings = replace(settings, embedder=models.guard.CheckedEmbedder(settings.embedder))

        if settings.plugins:
            system.plugins.turn_on(settings.plugins)
            parse.plugins.turn_on(tuple(settings.plugins))
        self._settings = settings
        self._opened = self._open_parts(store)
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        self._closed = False
        self._problem: str | None = None
        self._events: EventBus | None = None
        self._keeper: Keeper | None = None
        self._walk: KeeperState | None = None  # of a run of `index`, while it goes on
        #: The lock between the end of `index_before_keeping` and `keep`.
        self._kept_lock: IndexLock | SharedLock | None = None
        self._listener: ChangeListener | None = None
        self._fetcher: Web | None = None

    def _open_parts(self, store: Store) -> OpenParts:
        settings = self._settings
        embedders = EmbedderChoice(store, settings)
        backends = Backends(store, settings, cache_dir=lambda: embedders.cache_dir)
        return OpenParts(store, embedders, backends)

    @property
    @open_to_scopes
    def location(self) -> DatabaseLocation:
        """The database: the absolute path of its file, or a database on a server."""
        return self._opened.store.location

    @property
    @open_to_scopes
    def path(self) -> Path:
        """
        The database file.

        Raises:
            ServerDatabaseError: The database is on a server; `location` names it.
        """
        location = self.location
        if not isinstance(location, Path):
            raise ServerDatabaseError(
                f"The database {location} is no file.", hint="`location` names any database."
            )
        return location

    @property
    def _store(self) -> Store:
        return self._current().store

    @property
    def _embedders(self) -> EmbedderChoice:
        return self._current().embedders

    @property
    def _backends(self) -> Backends:
        return self._current().backends

    def _current(self) -> OpenParts:
        """
        The parts for the file that is at the database's path now, opened anew if it was replaced.

        While no file is there, or something still reads from the old one, these remain the parts
        of the old file, whose store raises DatabaseReplacedError.

        Raises:
            StoreError: The new file cannot be opened.
        """
        opened = self._opened
        if not opened.store.is_superseded:
            return opened
        with self._reopening:
            if self._opened is not opened or self._closed:
                return self._opened
            # The old connections are closed first: they might write to the log of the new file.
            if not opened.store.abandon():
                return opened
            self._opened = self._reopen(opened.store)
        opened.close()
        return self._opened

    def _reopen(self, old: Store) -> OpenParts:
        log = libraries.logging.getLogger(__name__)
        try:
            store = open_store(old.location, read_only=old.read_only, timeout_s=old.timeout_s)
        except StoreError as error:
            if self._problem != str(error):  # once, not at each use
                self._problem = str(error)
                log.warning("the database was replaced, and cannot be opened: %s", error.with_hint)
            raise
        self._problem = None
        log.warning(
            "the database %s was replaced; the file that is there now is open", old.location
        )
        return self._open_parts(store)

    @staticmethod
    def _write_audited(
        store: Store, action: str, target: str, change: Callable[[Writer], T], actor: str = ""
    ) -> T:
        """
        Run ``change`` in a transaction that records it in the audit log, too.

        ``actor``: the name of the token; "" for the administrator.
        """
        record = Parts._audit_record(action, target, actor)

        def run(writer: Writer) -> T:
            result = change(writer)
            record(writer)
            return result

        return store.write(run)

    @staticmethod
    def _audit_record(action: str, target: str, actor: str = "") -> Callable[[Writer], None]:
        """What records an action of this request in the audit log, within its transaction."""
        entry = values.access.AuditEntry(
            clock.now(), actor, current_face(), current_session(), action, target
        )
        return lambda writer: writer.access.record(entry)

    @property
    def events(self) -> EventBus:
        """Publishes each change of the index in this process: ``kb.events.subscribe(print)``."""
        with self._lock:
            if self._events is None:
                self._events = ingest.events.EventBus()
            return self._events

    def freshness(self, *, embeddings_pending: int | None = None) -> Freshness:
        """
        How far the index is behind the disk.

        If the database was deleted or replaced and cannot be opened again, ``notices`` says that
        and the other fields are empty.

        Args:
            embeddings_pending: How many distinct texts have no vectors, if the caller knows it;
                None to count them.
        """
        keeper = self._keeper
        state, waiting = self._walk, 0
        if keeper is not None:
            state, waiting = keeper.state, keeper.waiting
        try:
            store = self._store
            store.require_current()
        except StoreError as error:
            return ingest.keep.freshness.unknown_freshness(error.with_hint)
        return ingest.keep.freshness.read_freshness(
            store, state, waiting, embeddings_pending=embeddings_pending
        )
