"""What a knowledge base is made of."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.backends import Backends, BackendSettings
from qmd.embedder_choice import EmbedderChoice
from qmd.filetools import FileTools, Places
from qmd.store.store import Store

# What only some methods need is imported by them: `qmd search` is to be quick to start.
if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.ingest.events import EventBus
    from qmd.ingest.keeper import Keeper
    from qmd.search.vector_cache import VectorCache


class Parts:
    """
    The parts of one open knowledge base.

    What can be done with them is grouped in classes on top of this one, a module each;
    `KnowledgeBase` is all of them in one.
    """

    def __init__(
        self,
        store: Store,
        *,
        model: str | None = None,
        cache_dir: Path | None = None,
        embedder: Embedder | None = None,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
        ask_server: bool = False,
        places: Places = Places(),
        backends: BackendSettings = BackendSettings(),
    ) -> None:
        """Use `KnowledgeBase.open`."""
        self._store = store
        if embedder is not None:
            from qmd.inference.checked import CheckedEmbedder

            embedder = CheckedEmbedder(embedder)
        self._embedders = EmbedderChoice(
            store,
            model=model,
            cache_dir=cache_dir,
            given=embedder,
            ask_server=ask_server,
            server=backends.embedding_server,
        )
        self._backends = Backends(
            store,
            backends,
            cache_dir=lambda: self._embedders.cache_dir,
            expander=expander,
            reranker=reranker,
        )
        self._file_tools = FileTools(store, places, lambda: self._events)
        self._lock = threading.Lock()
        self._events: EventBus | None = None
        self._keeper: Keeper | None = None
        self._vectors: VectorCache | None = None

    @property
    def path(self) -> Path:
        """The database file."""
        return self._store.path

    @property
    def events(self) -> EventBus:
        """What happens to the index by this process's hands: ``kb.events.subscribe(print)``."""
        from qmd.ingest.events import EventBus

        with self._lock:
            if self._events is None:
                self._events = EventBus()
            return self._events
