"""
Opens the expander and the reranker that the settings choose for a knowledge base.

A setting is ``none``, ``llm`` (the language model of the settings), ``llm:MODEL`` or
``plugin:NAME``. A reranker may also be ``rerank:MODEL`` (the ``/rerank`` of a server),
``chat:MODEL`` (a language model that scores passages), the name of a cross-encoder, or a folder
with one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from qmd import inference, models
from qmd.errors import ConfigError, InferenceError, QmdError
from qmd.inference import llm
from qmd.records import replace
from qmd.store.sql.model_cache import MAX_ANSWER_BYTES

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.models.guard import Budget, Guarded, Kind, ModelGuard
    from qmd.settings import BackendSettings, Settings
    from qmd.store import Store

T = TypeVar("T")


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
            return models.remembered.CarefulExpander(self._custom_expander, guarded)
        inner = self._open_once("expander", lambda: open_expander(self.settings))
        model = f"{self._model_name(self.settings.expander)}|{inference.assistant.RECIPE}"
        return models.remembered.CarefulExpander(
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
            return models.remembered.CarefulReranker(self._custom_reranker, guarded)
        inner = self._open_once("reranker", lambda: open_reranker(self.settings, self._cache_dir()))
        inference.protocols.prepare(
            inner
        )  # a cross-encoder is loaded while the documents are retrieved
        model = (
            f"{self._model_name(self.settings.reranker)}|{inner.name}|{inference.assistant.RECIPE}"
        )
        return models.remembered.CarefulReranker(
            inner, replace(guarded, memory=self.memory, model=model)
        )

    def careful(self, embedder: Embedder, budget: Budget, share: float) -> Embedder:
        """
        Limit an embedder that asks a server, or is a plugin's, to its share; return others
        unchanged.
        """
        if models.plugins.is_plugin(embedder.spec.name):
            guarded = self._guarded(f"The model {embedder.spec.name}", budget, share)
        elif inference.protocols.asks_server(embedder):
            guarded = self._guarded("The embedding server", budget, share)
        else:
            return embedder
        return models.remembered.CarefulEmbedder(embedder, replace(guarded, memory=self.memory))

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
        expander: Expander = models.plugins.opened(settings.expander or "", "expanding")
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
        reranker: Reranker = models.plugins.opened(setting, "reranking")
        return reranker
    if kind in {"llm", "chat", "rerank"}:
        server = settings.server(model=model)
        marks = inference.assistant.LlmReranker(
            inference.assistant.ChatEndpoint(llm.endpoint.ModelEndpoint(server), server.model)
        )
        if kind == "chat":
            return marks
        return inference.assistant.RerankEndpoint(
            llm.endpoint.ModelEndpoint(settings.server("rerank")),
            server.model,
            fallback=marks if kind == "llm" else None,
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
