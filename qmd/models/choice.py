"""Chooses and opens the models of a knowledge base: what embeds, expands and reranks."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from qmd import inference, models, system
from qmd.errors import ConfigError, InferenceError, QmdError
from qmd.inference import llm
from qmd.records import replace
from qmd.store.sql.shared import MAX_ANSWER_BYTES
from qmd.system.user_dirs import user_dir

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.models.guard import Budget, Guarded, Kind, ModelGuard
    from qmd.settings import BackendSettings, Settings
    from qmd.store import Reader, Store
    from qmd.store.sql.models import StoredModel
    from qmd.system.running import RunningServer
    from qmd.values import ModelSpec, ProgressCallback


T = TypeVar("T")


# --- what expands and reranks -----------------------------------------------------------
# The settings choose both. A setting is ``none``, ``llm`` (the language model of the settings),
# ``llm:MODEL`` or ``plugin:NAME``. A reranker may also be ``rerank:MODEL`` (the ``/rerank`` of a
# server), ``chat:MODEL`` (a language model that scores passages), the name of a cross-encoder, or a
# folder with one.


class Backends:
    """
    Opens the expander and the reranker when they are first needed.

    Args:
        settings: The objects ``expander`` and ``reranker`` take precedence over the names in
            ``backends``.
        cache_dir: Returns the directory in which a cross-encoder is stored.
    """

    def __init__(self, store: Store, settings: Settings, *, cache_dir: Callable[[], Path]) -> None:
        self.settings = settings.backends
        self.memory = StoredMemory(store)
        self._cache_dir = cache_dir
        self._custom_expander = settings.expander
        self._custom_reranker = settings.reranker
        self._lock = threading.Lock()
        self._guards: dict[str, ModelGuard] = {}
        self._opened: dict[str, Any] = {}

    @property
    def has_expander(self) -> bool:
        return self._custom_expander is not None or is_set(self.settings.expander)

    @property
    def has_reranker(self) -> bool:
        return self._custom_reranker is not None or is_set(self.settings.reranker)

    def expander(self, budget: Budget, *, share: float = 1.0) -> Expander | None:
        """
        The expander for one query; None if the settings have none.

        Args:
            budget: The seconds that all models of the query may take together.
            share: The share of the remaining budget that the expander may use, 0..1.
        """
        if not self.has_expander:
            return None
        guarded = self._guarded("The expander", budget, share)
        if self._custom_expander is not None:
            return models.guard.CarefulExpander(self._custom_expander, guarded)
        inner = self._open_once("expander", lambda: open_expander(self.settings))
        model = f"{self._model_name(self.settings.expander)}|{inference.assistant.RECIPE}"
        return models.guard.CarefulExpander(
            inner, replace(guarded, memory=self.memory, model=model)
        )

    def reranker(self, budget: Budget) -> Reranker | None:
        """
        The reranker for one query, within its budget; None if the settings have none.

        A model on this machine begins to load, if it is not in memory yet.
        """
        if not self.has_reranker:
            return None
        guarded = self._guarded("The reranker", budget)
        if self._custom_reranker is not None:
            return models.guard.CarefulReranker(self._custom_reranker, guarded)
        inner = self._open_once("reranker", lambda: open_reranker(self.settings, self._cache_dir()))
        # A cross-encoder is loaded while the documents are retrieved.
        inference.protocols.prepare(inner)
        name = self._model_name(self.settings.reranker)
        model = f"{name}|{inner.name}|{inference.assistant.RECIPE}"
        return models.guard.CarefulReranker(
            inner, replace(guarded, memory=self.memory, model=model)
        )

    def careful(self, embedder: Embedder, budget: Budget, share: float) -> Embedder:
        """
        Limit an embedder that asks a server, or is a plugin's, to its share; return others
        unchanged.
        """
        if models.catalogue.is_plugin(embedder.spec.name):
            guarded = self._guarded(f"The model {embedder.spec.name}", budget, share)
        elif inference.protocols.asks_server(embedder):
            guarded = self._guarded("The embedding server", budget, share)
        else:
            return embedder
        return models.guard.CarefulEmbedder(embedder, replace(guarded, memory=self.memory))

    def _guarded(self, name: str, budget: Budget, share: float = 1.0) -> Guarded:
        """One query's way to the model of this name; all queries share its guard."""
        with self._lock:
            if name not in self._guards:
                self._guards[name] = models.guard.ModelGuard(name)
            return models.guard.Guarded(self._guards[name], budget, share)

    def _open_once(self, role: str, make: Callable[[], T]) -> T | Unusable:
        """
        Open a model, or return the one opened before.

        If the setting is wrong, the query does not fail. The next query tries to open the model
        again, because the problem may have been solved.
        """
        with self._lock:
            if role not in self._opened:
                try:
                    self._opened[role] = make()
                except QmdError as error:
                    return Unusable(error)
            backend: T = self._opened[role]
            return backend

    def _model_name(self, setting: str | None) -> str:
        return f"llm:{self.settings.llm_model}" if setting == "llm" else setting or ""


def is_set(setting: str | None) -> bool:
    """Whether the setting names a backend."""
    return bool(setting) and setting != "none"


def open_expander(settings: BackendSettings) -> Expander:
    """
    Open the expander that the settings name.

    Raises:
        ConfigError: The setting is not valid, or the settings name no server.
        ModelMissingError: No plugin has it.
    """
    kind, _, model = (settings.expander or "").partition(":")
    if kind == "plugin":
        expander: Expander = models.catalogue.open_plugin_model(
            settings.expander or "", "expanding"
        )
        return expander
    if kind != "llm":
        raise ConfigError(
            f"Not an expander: {settings.expander}",
            hint="expander (QMD_EXPANDER) is none, llm, llm:MODEL or plugin:NAME.",
        )
    server = settings.server(model=model)
    return inference.assistant.LlmExpander(
        inference.assistant.ChatEndpoint(llm.endpoint.ModelEndpoint(server), server.model)
    )


def open_reranker(settings: BackendSettings, cache_dir: Path) -> Reranker:
    """Open the reranker that the settings name. Raises ConfigError, ModelMissingError."""
    setting = settings.reranker or ""
    kind, _, model = setting.partition(":")
    if kind == "plugin":
        reranker: Reranker = models.catalogue.open_plugin_model(setting, "reranking")
        return reranker
    if kind == "rerank":
        server = settings.server("rerank", model)
        return inference.assistant.RerankEndpoint(llm.endpoint.ModelEndpoint(server), server.model)
    if kind in {"llm", "chat"}:
        server = settings.server(model=model)
        marks = inference.assistant.LlmReranker(
            inference.assistant.ChatEndpoint(llm.endpoint.ModelEndpoint(server), server.model)
        )
        if kind == "chat":
            return marks
        reranking = settings.server("rerank") if settings.rerank_url else server
        return inference.assistant.RerankEndpoint(
            llm.endpoint.ModelEndpoint(reranking), server.model, fallback=marks
        )
    return inference.crossencoder.open_cross_encoder(setting, cache_dir)


class Unusable:
    """Takes the place of a model that could not be opened; every call raises the reason."""

    name = "unusable"

    def __init__(self, error: QmdError) -> None:
        self._error = error

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise InferenceError(str(self._error), hint=self._error.hint)

    expand = rerank = _raise


class StoredMemory:
    """
    A `Memory` that stores the answers of models in the database.

    This object holds answers until they are written, so that a query that is repeated at once, or
    on a read-only database, does not ask the model again.
    """

    #: Most answers held while they cannot be written; the oldest are dropped.
    _MOST_HELD = 1000

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: dict[tuple[Kind, str, bytes], bytes] = {}

    def recall(self, kind: Kind, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            held = {key: self._held.get((kind, model, key)) for key in keys}
        answers = {key: value for key, value in held.items() if value is not None}
        missing_keys = [key for key in held if key not in answers]
        if missing_keys:
            with self._store.reading() as reader:
                answers |= reader.model_cache.get(kind, model, missing_keys)
        return answers

    def keep(self, kind: Kind, model: str, values: Mapping[bytes, bytes]) -> None:
        unwritten = {
            (kind, model, key): value
            for key, value in values.items()
            if len(value) <= MAX_ANSWER_BYTES
        }
        with self._lock:
            self._held |= unwritten
            for oldest in list(self._held)[: -self._MOST_HELD]:
                del self._held[oldest]

        def release_written() -> None:
            with self._lock:
                for answer_key in unwritten:
                    self._held.pop(answer_key, None)

        self._store.write_soon(
            lambda writer: writer.model_cache.put(kind, model, values), release_written
        )


# --- what embeds ------------------------------------------------------------------------
# Queries are embedded with the model whose vectors the database holds, in all processes alike. New
# vectors are made with the target model, which is the first of these: the model chosen for this
# database (`qmd models use`), the model in the settings of this process, the model with which an
# unfinished embedding has begun, the model whose vectors the database holds, the default model.

# Opening a knowledge base must load no model code: `qmd search` needs none.


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
            name = recorded.name if recorded is not None else models.catalogue.DEFAULT_MODEL
        return models.catalogue.recorded_name(name)

    def query_model_name(self, reader: Reader) -> str:
        """The name of the model that embeds queries: that of the vectors, else the target model."""
        if self.custom_embedder is not None:
            return self.custom_embedder.spec.name
        active = reader.models.active()
        if active is not None and reader.models.has_vectors():
            return active.name
        return self.target_name(reader)

    def english_name(self, active: StoredModel) -> str | None:
        """The name of the model of English beside that of the vectors; None if none is here."""
        if self.custom_embedder is not None:
            beside = inference.protocols.english_embedder(self.custom_embedder)
            return None if beside is None else beside.spec.name
        build = inference.embedded.build
        is_default = active.fingerprint == build.FINGERPRINT
        return build.ENGLISH_NAME if is_default and build.has_english_file() else None

    # -- the model of queries ------------------------------------------------------------

    def spec(self) -> ModelSpec:
        """The model that embeds queries. Raises ModelMissingError, InferenceError."""
        return self._store.read(lambda reader: self._spec(reader, self.query_model_name(reader)))

    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        if self.custom_embedder is not None:
            return True
        if "qmd.models.catalogue" not in sys.modules:
            return False
        return self._store.read(lambda reader: self._is_loaded(self.query_model_name(reader)))

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
        if not self._ask_server or models.catalogue.is_endpoint(name):
            return self._open_recorded(reader, name)
        return inference.remote.RemoteEmbedder(
            self._spec(reader, name),
            find=self._other_server,
            is_loaded=lambda: self._is_loaded(name),
            local=lambda: self.open(name),
        )

    def asks_server(self, reader: Reader) -> bool:
        """Whether a model server embeds queries."""
        return self.custom_embedder is None and models.catalogue.is_endpoint(
            self.query_model_name(reader)
        )

    # -- any model --------------------------------------------------------------------

    def is_available(self, name: str | None = None) -> bool:
        """Whether `open` needs no download; ``name`` None stands for the target model."""
        if self.custom_embedder is not None:
            return True
        if name is None:
            name = self._store.read(self.target_name)
        return models.catalogue.is_available(name, self.cache_dir)

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
        return models.catalogue.open_embedder(
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
        if models.catalogue.is_endpoint(name):
            return self._open_recorded(reader, name).spec
        return models.catalogue.spec_of(name)

    def _is_loaded(self, name: str) -> bool:
        return models.catalogue.is_loaded(name, self.cache_dir)

    def _other_server(self) -> RunningServer | None:
        server = system.running.find(self._store.location)
        return None if server is None or server.pid == os.getpid() else server
