"""
The choice of the embedding model of a knowledge base, and of the process that runs it.

Queries are embedded with the model whose vectors the database holds, in all processes alike. New
vectors are made with the target model, which is the first of these: the model chosen for this
database (`qmd models use`), the model in the settings of this process, the model with which an
unfinished embedding has begun, the model whose vectors the database holds, the default model.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import inference, models, system
from qmd.system.user_dirs import user_dir

# Opening a knowledge base must load no model code: `qmd search` needs none.
if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.settings import Settings
    from qmd.store import Reader, Store
    from qmd.system.running import RunningServer
    from qmd.values import ModelSpec, ProgressCallback


class EmbedderChoice:
    """
    Opens embedding models when they are first needed.

    Args:
        store: The database. With ``settings.ask_server``, the qmd server that runs for it may embed
            questions.
        settings: If they have an ``embedder``, it is used for everything.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.custom_embedder = settings.embedder
        self.configured_model = settings.model
        self._store = store
        self._cache_dir = settings.cache_dir
        self._ask_server = settings.ask_server
        self._server = settings.backends.embedding_server

    @property
    def cache_dir(self) -> Path:
        if self._cache_dir is None:
            self._cache_dir = user_dir("cache")
        return Path(self._cache_dir).expanduser()

    # -- names -------------------------------------------------------------------------

    def target_name(self, reader: Reader) -> str:
        """The name of the target model, which makes new vectors."""
        if self.custom_embedder is not None:
            return self.custom_embedder.spec.name
        name = reader.models.chosen_name() or self.configured_model
        if name is None:
            recorded = reader.models.coming() or reader.models.active()
            name = recorded.name if recorded is not None else models.embedders.DEFAULT_MODEL
        return models.embedders.normal(name)

    def query_model_name(self, reader: Reader) -> str:
        """The name of the model that embeds queries: that of the vectors, else the target model."""
        if self.custom_embedder is not None:
            return self.custom_embedder.spec.name
        active = reader.models.active()
        if active is not None and reader.models.has_vectors():
            return active.name
        return self.target_name(reader)

    # -- the model of queries ------------------------------------------------------------

    def spec(self) -> ModelSpec:
        """The model that embeds queries. Raises ModelMissingError, InferenceError."""
        with self._store.reading() as reader:
            return self._spec(reader, self.query_model_name(reader))

    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        if self.custom_embedder is not None:
            return True
        if "qmd.models.embedders" not in sys.modules:
            return False
        with self._store.reading() as reader:
            return self._is_loaded(self.query_model_name(reader))

    def query_embedder(self) -> Embedder:
        """Open the model that embeds queries. Raises ModelMissingError, InferenceError."""
        with self._store.reading() as reader:
            return self._open_recorded(reader, self.query_model_name(reader))

    def for_questions(self, reader: Reader) -> Embedder:
        """
        The embedder for the question of a search.

        While the model is not in the memory of this process, a qmd server that runs for the
        database embeds the question, since loading the model takes longer than the search.

        Args:
            reader: The snapshot that is searched, so that question and vectors are of one model.

        Raises:
            ModelMissingError, InferenceError.
        """
        if self.custom_embedder is not None:
            return self.custom_embedder
        name = self.query_model_name(reader)
        if not self._ask_server or models.embedders.is_endpoint(name):
            return self._open_recorded(reader, name)
        return inference.remote.RemoteEmbedder(
            self._spec(reader, name),
            find=self._other_server,
            is_loaded=lambda: self._is_loaded(name),
            local=lambda: self.open(name),
        )

    def asks_server(self, reader: Reader) -> bool:
        """Whether a model server embeds queries."""
        return self.custom_embedder is None and models.embedders.is_endpoint(
            self.query_model_name(reader)
        )

    # -- any model --------------------------------------------------------------------

    def is_available(self, name: str | None = None) -> bool:
        """Whether `open` needs no download; ``name`` None stands for the target model."""
        if self.custom_embedder is not None:
            return True
        if name is None:
            with self._store.reading() as reader:
                name = self.target_name(reader)
        return models.embedders.is_available(name, self.cache_dir)

    def open(
        self,
        name: str | None = None,
        *,
        download: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Embedder:
        """
        Open a model in this process; ``name`` None stands for the target model.

        Raises:
            ModelMissingError, InferenceError, ConfigError.
        """
        if self.custom_embedder is not None:
            return self.custom_embedder
        with self._store.reading() as reader:
            name = name or self.target_name(reader)
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
        # embedders keeps one model a process; opening again is cheap.
        return models.embedders.open_embedder(
            name,
            cache_dir=self.cache_dir,
            download=download,
            progress=progress,
            server=self._server,
            dimension=dimension,
        )

    def _open_recorded(self, reader: Reader, name: str) -> Embedder:
        return self.custom_embedder or self._open(name, self._dimension(reader, name))

    @staticmethod
    def _dimension(reader: Reader, name: str) -> int | None:
        """The dimension that the database has recorded for a model; None if it has none."""
        recorded = (reader.models.active(), reader.models.coming())
        return next((model.dimension for model in recorded if model and model.name == name), None)

    def _spec(self, reader: Reader, name: str) -> ModelSpec:
        if self.custom_embedder is not None:
            return self.custom_embedder.spec
        if models.embedders.is_endpoint(name):
            return self._open_recorded(reader, name).spec
        return models.embedders.spec_of(name)

    def _is_loaded(self, name: str) -> bool:
        return models.embedders.is_loaded(name, self.cache_dir)

    def _other_server(self) -> RunningServer | None:
        server = system.running.find(self._store.location)
        return None if server is None or server.pid == os.getpid() else server
