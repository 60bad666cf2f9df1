"""
Which embedding model is a knowledge base's, and where it runs.

A database has one model, which all processes share: the one whose vectors it holds answers
questions. It is to have the one that was chosen for it (`qmd models use`); else the one of the
settings, which a process may have of its own; else the one that an embedding has begun with;
else the one it has; else the default.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

# Opening a knowledge base must load no model code: `qmd search` needs none.
if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.settings import Settings
    from qmd.store import Reader, Store
    from qmd.system.running import RunningServer
    from qmd.values import ModelSpec, ProgressCallback


class EmbedderChoice:
    """
    Opens embedders by name, each when it is first needed.

    Args:
        store: The qmd server that runs for it may embed questions, if ``ask_server``.
        settings: Their ``embedder`` is used whatever else is said.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.given = settings.embedder
        self.model = settings.model
        self._store = store
        self._cache_dir = settings.cache_dir
        self._ask_server = settings.ask_server
        self._server = settings.backends.embedding_server

    @property
    def cache_dir(self) -> Path:
        if self._cache_dir is None:
            from platformdirs import user_cache_dir

            self._cache_dir = user_cache_dir("qmd", appauthor=False)
        return Path(self._cache_dir).expanduser()

    # -- which -------------------------------------------------------------------------

    def wanted(self, reader: Reader) -> str:
        """The name of the model that the index is to have."""
        from qmd.models import embedders

        if self.given is not None:
            return self.given.spec.name
        name = reader.models.chosen_name() or self.model
        if name is None:
            begun = reader.models.coming() or reader.models.active()
            name = begun.name if begun is not None else embedders.DEFAULT_MODEL
        return embedders.normal(name)

    def answering(self, reader: Reader) -> str:
        """The name of the model that embeds questions: that of the vectors, if there are any."""
        if self.given is not None:
            return self.given.spec.name
        active = reader.models.active()
        if active is not None and reader.models.has_vectors():
            return active.name
        return self.wanted(reader)

    # -- of the model that answers ------------------------------------------------------

    def spec(self) -> ModelSpec:
        """What questions are embedded with. Raises ModelMissingError, InferenceError."""
        with self._store.reading() as reader:
            return self._spec(reader, self.answering(reader))

    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        if self.given is not None:
            return True
        if "qmd.models.embedders" not in sys.modules:
            return False
        with self._store.reading() as reader:
            return self._is_loaded(self.answering(reader))

    def answerer(self) -> Embedder:
        """The model of questions in this process. Raises ModelMissingError, InferenceError."""
        with self._store.reading() as reader:
            return self._open_recorded(reader, self.answering(reader))

    def for_questions(self, reader: Reader) -> Embedder:
        """
        The database's running server while the model is not in memory here, else the model.

        Args:
            connection: The snapshot that is searched, so that question and vectors fit.
        """
        if self.given is not None:
            return self.given
        from qmd.models import embedders

        name = self.answering(reader)
        if not self._ask_server or embedders.is_endpoint(name):
            return self._open_recorded(reader, name)
        from qmd.inference.remote import RemoteEmbedder

        return RemoteEmbedder(
            self._spec(reader, name),
            find=self._other_server,
            is_loaded=lambda: self._is_loaded(name),
            local=lambda: self.open(name),
        )

    def asks_server(self, reader: Reader) -> bool:
        """Whether questions are embedded by a model server."""
        from qmd.models import embedders

        return self.given is None and embedders.is_endpoint(self.answering(reader))

    # -- of any ------------------------------------------------------------------------

    def is_available(self) -> bool:
        """Whether vectors can be made without a download."""
        with self._store.reading() as reader:
            return self.available(self.wanted(reader))

    def available(self, name: str) -> bool:
        """Whether `open` can do without a download."""
        if self.given is not None:
            return True
        from qmd.models import embedders

        return embedders.is_available(name, self.cache_dir)

    def open(
        self,
        name: str | None = None,
        *,
        download: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Embedder:
        """
        A model in this process; None for the one that the index is to have.

        Raises:
            ModelMissingError, InferenceError, ConfigError.
        """
        if self.given is not None:
            return self.given
        with self._store.reading() as reader:
            name = name or self.wanted(reader)
            dimension = self._dimension(reader, name)
        return self._open(name, dimension, download=download, progress=progress)

    def _open(
        self,
        name: str,
        dimension: int | None,
        *,
        download: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Embedder:
        from qmd.models import embedders

        # embedders keeps one model a process; opening again is cheap.
        return embedders.open_embedder(
            name,
            cache_dir=self.cache_dir,
            download=download,
            progress=progress,
            server=self._server,
            dimension=dimension,
        )

    def _open_recorded(self, reader: Reader, name: str) -> Embedder:
        return self.given or self._open(name, self._dimension(reader, name))

    @staticmethod
    def _dimension(reader: Reader, name: str) -> int | None:
        """As it was recorded, so that no server is asked for it."""
        known = (reader.models.active(), reader.models.coming())
        return next((each.dimension for each in known if each and each.name == name), None)

    def _spec(self, reader: Reader, name: str) -> ModelSpec:
        if self.given is not None:
            return self.given.spec
        from qmd.models import embedders

        if embedders.is_endpoint(name):
            return self._open_recorded(reader, name).spec
        return embedders.spec_of(name)

    def _is_loaded(self, name: str) -> bool:
        from qmd.models import embedders

        return embedders.is_loaded(name, self.cache_dir)

    def _other_server(self) -> RunningServer | None:
        from qmd.system import running

        server = running.find(self._store.path)
        return None if server is None or server.pid == os.getpid() else server
