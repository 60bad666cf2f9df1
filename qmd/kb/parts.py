"""What a knowledge base is made of."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import StoreError
from qmd.models.backends import Backends
from qmd.models.embedder_choice import EmbedderChoice
from qmd.settings import Settings
from qmd.store import open_store

# What only some methods need is imported by them: `qmd search` is to be quick to start.
if TYPE_CHECKING:
    from qmd.ingest.events import EventBus
    from qmd.ingest.keep.keeper import Keeper
    from qmd.kb.file_tools import FileTools
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.store import Store


@dataclass(slots=True)
class OpenParts:
    """What belongs to one database file, and is closed when another file takes its place."""

    store: Store
    embedders: EmbedderChoice
    backends: Backends
    file_tools: FileTools | None = None
    vectors: VectorCache | None = None

    def close(self) -> None:
        """May be called twice."""
        if self.vectors is not None:
            self.vectors.close()
        if self.file_tools is not None:
            self.file_tools.close()
        self.store.close()


class Parts:
    """
    The parts of one open knowledge base, from which the classes in the modules beside are derived.

    When another file takes the database's place, the parts are made anew for it. So two accesses
    may give parts of two files, but never inside `Store.reading`. A method that needs one file
    throughout takes the store once.
    """

    def __init__(self, store: Store, settings: Settings = Settings()) -> None:
        """Use `KnowledgeBase.open`."""
        if settings.embedder is not None:
            from qmd.models.checked import CheckedEmbedder

            settings = replace(settings, embedder=CheckedEmbedder(settings.embedder))

        self._settings = settings
        self._opened = self._open_parts(store)
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        self._closed = False
        self._problem: str | None = None
        self._events: EventBus | None = None
        self._keeper: Keeper | None = None

    def _open_parts(self, store: Store) -> OpenParts:
        settings = self._settings
        embedders = EmbedderChoice(store, settings)
        backends = Backends(store, settings, cache_dir=lambda: embedders.cache_dir)
        return OpenParts(store, embedders, backends)

    @property
    def path(self) -> Path:
        """The database file."""
        return self._opened.store.path

    @property
    def _store(self) -> Store:
        return self._current().store

    @property
    def _embedders(self) -> EmbedderChoice:
        return self._current().embedders

    @property
    def _backends(self) -> Backends:
        return self._current().backends

    @property
    def _file_tools(self) -> FileTools:
        opened = self._current()
        with self._lock:
            if opened.file_tools is None:
                from qmd.kb.file_tools import FileTools

                opened.file_tools = FileTools(opened.store, self._settings, lambda: self._events)
            return opened.file_tools

    def _current(self) -> OpenParts:
        """
        The parts for the file that the path names now; they are opened here if it is another one.

        While there is no file, and while something still reads the old one, these are the parts
        for the old one, whose store raises DatabaseReplacedError.

        Raises:
            StoreError: There is another file, and it cannot be opened.
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
        import logging

        log = logging.getLogger(__name__)
        try:
            store = open_store(old.path, read_only=old.read_only, timeout_s=old.timeout_s)
        except StoreError as error:
            if self._problem != str(error):  # once, not at each use
                self._problem = str(error)
                log.warning("the database was replaced, and cannot be opened: %s", error.with_hint)
            raise
        self._problem = None
        log.warning("the database %s was replaced; the file that is there now is open", old.path)
        return self._open_parts(store)

    @property
    def events(self) -> EventBus:
        """Changes of the index that this process makes: ``kb.events.subscribe(print)``."""
        from qmd.ingest.events import EventBus

        with self._lock:
            if self._events is None:
                self._events = EventBus()
            return self._events
