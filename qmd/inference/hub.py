"""
Models of the Hugging Face hub that fastembed lists; one is downloaded only on request.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd import libraries
from qmd.errors import InferenceError, ModelMissingError
from qmd.inference.families import family
from qmd.inference.fastembedder import quiet_libraries, text_embedding
from qmd.values import ModelSpec, Progress, ProgressCallback

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

_UNSUITED = re.compile(r"text&image|siglip|side (only|lookup)|Query-side|Document side")
_UNKNOWN_MAX_TOKENS = 512


def spec_of(name: str) -> ModelSpec:
    """
    The facts of a model, from fastembed's list; importing fastembed takes most of a second.

    Raises:
        ModelMissingError: fastembed lists no model of this name.
    """
    description = _description(name)
    model_family = family(name)
    query, passage = model_family.query_prefix, model_family.passage_prefix
    tokens = re.search(r"(\d+) input tokens", description["description"])
    return ModelSpec(
        name=description["model"],
        fingerprint=f"{description['model']}|{description['model_file']}|{query}|{passage}",
        dimension=description["dim"],
        max_tokens=int(tokens[1]) if tokens else _UNKNOWN_MAX_TOKENS,
        query_prefix=query,
        passage_prefix=passage,
    )


def is_ready(name: str, cache_dir: Path) -> bool:
    """Whether the model was downloaded into ``cache_dir``."""
    return _marker(name, cache_dir).is_file()


def loader(
    name: str,
    cache_dir: Path,
    download: bool,
    progress: ProgressCallback | None,
) -> Callable[[], TextEmbedding]:
    """
    A function that loads the model; it is downloaded now if ``download``.

    Raises:
        ModelMissingError: The model is not on this machine, or the hub does not give it.
    """
    _description(name)

    def load(*, local_files_only: bool = True) -> TextEmbedding:
        try:
            return text_embedding(
                name,
                cache_dir=str(_directory(cache_dir)),
                local_files_only=local_files_only,
            )
        except InferenceError as error:
            raise _missing("embedding model", name, local_files_only, error) from error

    if download:
        if progress is not None:
            progress(Progress("model", 0, None, f"downloading {name}"))
        load(local_files_only=False)
        _marker(name, cache_dir).touch()
    elif not is_ready(name, cache_dir):
        load()  # raises unless somebody has put the files there
        _marker(name, cache_dir).touch()
    return load


def cross_encoder_description(name: str) -> dict[str, Any]:
    """
    The entry of a cross-encoder in fastembed's list.

    Raises:
        ModelMissingError: It lists none of this name.
    """
    for description in cross_encoders():
        if description["model"].lower() == name.lower():
            return description
    raise ModelMissingError(
        f"There is no cross-encoder named {name!r}.",
        hint="Run 'qmd models list' to see the models, or give a folder that holds one.",
    )


def load_cross_encoder(name: str, cache_dir: Path) -> HubPairs:
    """A cross-encoder that was downloaded. Raises ModelMissingError."""
    return _cross_encoder(name, cache_dir, local_files_only=True)


def fetch_cross_encoder(name: str, cache_dir: Path, progress: ProgressCallback | None) -> None:
    """Download a cross-encoder. Raises ModelMissingError if the hub does not give it."""
    name = cross_encoder_description(name)["model"]
    if progress is not None:
        progress(Progress("model", 0, None, f"downloading {name}"))
    _cross_encoder(name, cache_dir, local_files_only=False)
    _marker(name, cache_dir).touch()


def _cross_encoder(name: str, cache_dir: Path, *, local_files_only: bool) -> HubPairs:
    quiet_libraries()
    try:
        model = libraries.cross_encoder.TextCrossEncoder(
            name,
            cache_dir=str(_directory(cache_dir)),
            cuda=False,
            threads=1,
            local_files_only=local_files_only,
        )
    except Exception as error:  # fastembed's, onnxruntime's and the hub's share no other base
        raise _missing("cross-encoder", name, local_files_only, error) from error
    return HubPairs(model)


class HubPairs:
    """A `PairModel`: a cross-encoder of fastembed, asked for one pair at a time."""

    def __init__(self, model: TextCrossEncoder) -> None:
        self._model = model

    def logit(self, query: str, passage: str) -> float:
        """How well the passage answers; higher is better, without bounds."""
        (score,) = self._model.rerank(query, [passage], batch_size=1)
        return float(score)


def embedding_models() -> list[dict[str, Any]]:
    """fastembed's list without the models for pictures, and those for one side only."""
    return [
        each
        for each in libraries.fastembed.TextEmbedding.list_supported_models()
        if not _UNSUITED.search(f"{each['model']} {each['description']}")
    ]


def cross_encoders() -> list[dict[str, Any]]:
    """fastembed's list of cross-encoders."""
    return libraries.cross_encoder.TextCrossEncoder.list_supported_models()


def not_here(name: str) -> ModelMissingError:
    """The error for an embedding model that was not downloaded."""
    return _missing("embedding model", name, True, ModelMissingError(""))


def _missing(kind: str, name: str, local_files_only: bool, error: Exception) -> ModelMissingError:
    if local_files_only:
        return ModelMissingError(
            f"The {kind} {name} is not on this machine.", hint=f"Run 'qmd models pull {name}'."
        )
    return ModelMissingError(
        f"Cannot get the {kind} {name}: {error.__cause__ or error}",
        hint="Check the network; HF_ENDPOINT names a mirror of the hub.",
    )


def _description(name: str) -> dict[str, Any]:
    for description in libraries.fastembed.TextEmbedding.list_supported_models():
        if description["model"].lower() == name.lower():
            return description
    names = {each["model"].lower(): each["model"] for each in embedding_models()}
    short = {full.rpartition("/")[2]: original for full, original in names.items()}
    near = difflib.get_close_matches(name.lower(), [*names, *short], n=2, cutoff=0.6)
    guesses = dict.fromkeys((names | short)[each] for each in near)
    raise ModelMissingError(
        f"There is no embedding model named {name!r}.",
        hint=(f"Did you mean {' or '.join(guesses)}? " if guesses else "")
        + "Run 'qmd models list' to see the models.",
    )


def _directory(cache_dir: Path) -> Path:
    return cache_dir / "fastembed"


def _marker(name: str, cache_dir: Path) -> Path:
    return _directory(cache_dir) / (re.sub(r"[^\w.-]", "--", name.lower()) + ".ready")
