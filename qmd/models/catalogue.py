"""Lists the models, downloads one, and changes the embedding model of a database."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import InputError
from qmd.inference import hub, onnx_folder
from qmd.models import embedders, plugins
from qmd.models.embedder_choice import EmbedderChoice
from qmd.store.sql.models import StoredModel
from qmd.values import ModelChange, ModelInfo, ProgressCallback

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.store import Store, Writer

_LANGUAGES = ("English", "Chinese", "German", "Spanish")


class Catalogue:
    """
    The models of one knowledge base: ``kb.models``.

    Args:
        is_kept: Returns whether some process makes vectors in the background.
        wake: Starts embedding in the background, if this process does that.
    """

    def __init__(
        self,
        store: Store,
        choice: EmbedderChoice,
        *,
        is_kept: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._choice = choice
        self._is_kept = is_kept
        self._wake = wake

    def list(self) -> list[ModelInfo]:
        """The models of this database first, then the default, then those of the hub."""
        with self._store.reading() as reader:
            active, coming = reader.models.active(), reader.models.coming()
            target = self._choice.target_name(reader)
        return list_models(self._choice.cache_dir, active, coming, target)

    def pull(self, name: str | None = None, progress: ProgressCallback | None = None) -> ModelInfo:
        """
        Download a model; ``name`` None stands for the target model of this database.

        Raises:
            ModelMissingError: There is no such model, or it cannot be downloaded.
            InputError: The model runs at a server.
        """
        if name is None:
            with self._store.reading() as reader:
                name = self._choice.target_name(reader)
        return pull(name, self._choice.cache_dir, progress)

    def use(self, name: str) -> ModelChange:
        """
        Choose the embedding model of this database, for all processes, whatever their settings.

        If a process keeps the index, it makes the vectors in the background; else `embed` makes
        them. Until all are made, searches use the vectors of the old model.

        Raises:
            ModelMissingError: The model is not on this machine, or does not exist.
            InferenceError: The model cannot run here, or its server does not answer.
            VectorsUnavailableError, ReadOnlyError.
        """

        name = embedders.normal(name.strip())
        if any(encoder["model"].lower() == name.lower() for encoder in _cross_encoders(name)):
            raise InputError(
                f"{name} reranks, it makes no vectors.",
                hint=f"Set reranker = {name!r} in the settings file, or QMD_RERANKER.",
            )
        if not embedders.is_available(name, self._choice.cache_dir):
            if not embedders.is_endpoint(name):
                embedders.spec_of(name)  # raises if there is no such model
            raise hub.not_here(name)
        embedder: Embedder = self._choice.open(name)
        spec = embedder.spec

        def change(writer: Writer) -> ModelChange:
            before = writer.models.active()
            had_vectors = writer.models.has_vectors()
            if before is not None and before.fingerprint == spec.fingerprint:
                writer.models.cancel()
            model = writer.models.begin(spec)
            writer.models.choose(spec.name)
            return ModelChange(
                model=spec.name,
                dimension=spec.dimension,
                before=before.name if before is not None and had_vectors else None,
                waiting=writer.embeddings.count_waiting(model),
                kept=False,
            )

        result = self._store.write(change)
        self._wake()
        return replace(result, kept=self._is_kept())


def list_models(
    cache_dir: Path,
    active: StoredModel | None = None,
    coming: StoredModel | None = None,
    target: str | None = None,
) -> list[ModelInfo]:
    """All models of the hub and of a database, with their facts; imports fastembed."""

    def info(name: str, dimension: int | None, **facts: Any) -> ModelInfo:
        state: Literal["active", "coming"] | None = None
        if active is not None and active.name == name:
            state = "active"
        elif name == target or (coming is not None and coming.name == name):
            state = "coming"
        ready = embedders.is_available(name, cache_dir)
        return ModelInfo(name, "embedding", dimension, state=state, ready=ready, **facts)

    infos = [
        info(
            embedders.DEFAULT_MODEL,
            embedders.spec_of(embedders.DEFAULT_MODEL).dimension,
            source="embedded",
            size_bytes=93_000_000,
            languages="multilingual (about 100)",
            license="MIT",
        )
    ]
    for entry in hub.embedding_models():
        infos.append(
            info(
                entry["model"],
                entry["dim"],
                source="hub",
                size_bytes=round(entry["size_in_GB"] * 1e9),
                languages=_languages(entry["description"]),
                license=entry["license"],
            )
        )
    infos += [info(name, None, source="plugin") for name in plugins.models("embedding")]
    names = {listed.name for listed in infos}
    recorded = [
        stored for stored in (active, coming) if stored is not None and stored.name not in names
    ]
    for model in recorded:
        infos.append(info(model.name, model.dimension, source=_source(model.name)))
    if target is not None and target not in names | {stored.name for stored in recorded}:
        infos.append(info(target, None, source=_source(target)))
    for name in plugins.models("reranking"):
        infos.append(ModelInfo(name, "reranker", None, source="plugin", ready=True))
    for entry in hub.cross_encoders():
        infos.append(
            ModelInfo(
                entry["model"],
                "reranker",
                None,
                source="hub",
                size_bytes=round(entry["size_in_GB"] * 1e9),
                languages=_languages(f"{entry['model']} {entry['description']}"),
                license=entry["license"],
                ready=hub.is_ready(entry["model"], cache_dir),
            )
        )
    return sorted(infos, key=lambda model: (model.kind, model.state is None, not model.ready))


def pull(name: str, cache_dir: Path, progress: ProgressCallback | None = None) -> ModelInfo:
    """Download a model, as `Catalogue.pull` does, without a database."""

    name = embedders.normal(name.strip())
    if embedders.is_endpoint(name):
        raise InputError(
            f"{name} runs at a server; there is nothing to fetch.",
            hint=f"Run 'qmd models use {name}'.",
        )
    if any(encoder["model"].lower() == name.lower() for encoder in _cross_encoders(name)):
        hub.fetch_cross_encoder(name, cache_dir, progress)
    else:
        embedders.open_embedder(name, cache_dir=cache_dir, download=True, progress=progress)
    models = list_models(cache_dir, target=name)
    return next(model for model in models if model.name.lower() == name.lower())


def _cross_encoders(name: str) -> list[dict[str, Any]]:
    """The cross-encoders of the hub; empty if ``name`` cannot be the name of one."""

    may_be_on_hub = name != embedders.DEFAULT_MODEL and not embedders.is_endpoint(name)
    return hub.cross_encoders() if may_be_on_hub and not onnx_folder.is_folder(name) else []


def _source(name: str) -> str:

    if embedders.is_endpoint(name):
        return "server"
    if plugins.is_plugin(name):
        return "plugin"
    return "folder" if onnx_folder.is_folder(name) else "unknown"


def _languages(description: str) -> str | None:
    named = [language for language in _LANGUAGES if re.search(rf"\b{language}\b", description)]
    many = re.search(r"multi-?\s?lingual", description, re.IGNORECASE)
    if many and not named:
        count = re.search(r"~\s?(\d+)", description)
        return f"multilingual (about {count[1]})" if count else "multilingual"
    if "programming" in description:
        named.append("code")
    if re.search(r"-en\b|ms-marco", description):
        named.append("English")
    return ", ".join(dict.fromkeys(named)) or None
