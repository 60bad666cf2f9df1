"""
The models that fastembed knows, from the Hugging Face hub; fetched only when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError, ModelMissingError
from qmd.inference.fastembedder import text_embedding
from qmd.model import ModelSpec, Progress

if TYPE_CHECKING:
    from fastembed import TextEmbedding

# What a family was trained to see in front of (query, passage).
_PREFIXES = (
    (r"(^|[-/])e5-", "query: ", "passage: "),
    (r"bge-.*-en", "Represent this sentence for searching relevant passages: ", ""),
    (r"bge-.*-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"mxbai-embed", "Represent this sentence for searching relevant passages: ", ""),
    (r"snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""),
    (r"nomic-embed", "search_query: ", "search_document: "),
)
_UNKNOWN_MAX_TOKENS = 512


def spec_of(name: str) -> ModelSpec:
    """
    Imports fastembed, which takes most of a second.

    Raises:
        ModelMissingError: fastembed knows no model of this name.
    """
    description = _description(name)
    query, passage = prefixes(name)
    tokens = re.search(r"(\d+) input tokens", description["description"])
    return ModelSpec(
        name=description["model"],
        fingerprint=f"{description['model']}|{description['model_file']}|{query}|{passage}",
        dimension=description["dim"],
        max_tokens=int(tokens[1]) if tokens else _UNKNOWN_MAX_TOKENS,
        query_prefix=query,
        passage_prefix=passage,
    )


def prefixes(name: str) -> tuple[str, str]:
    """What goes in front of a query and of a passage, empty for an unknown family."""
    for pattern, query, passage in _PREFIXES:
        if re.search(pattern, name.lower()):
            return query, passage
    return "", ""


def is_ready(name: str, cache_dir: Path) -> bool:
    """Whether it was fetched into ``cache_dir``."""
    return _marker(name, cache_dir).is_file()


def loader(
    name: str,
    cache_dir: Path,
    download: bool,
    progress: Callable[[Progress], None] | None,
) -> Callable[[], TextEmbedding]:
    """
    Fetch the model if asked to, and return what loads it.

    Raises:
        ModelMissingError: It is not here, or the hub does not give it.
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
            raise ModelMissingError(
                f"The embedding model {name} is not on this machine."
                if local_files_only
                else f"Cannot get the embedding model {name}: {error.__cause__ or error}",
                hint=f"Run 'qmd models pull {name}'."
                if local_files_only
                else "Check the network; HF_ENDPOINT names a mirror of the hub.",
            ) from error

    if download:
        if progress is not None:
            progress(Progress("model", 0, None, f"downloading {name}"))
        load(local_files_only=False)
        _marker(name, cache_dir).touch()
    elif not is_ready(name, cache_dir):
        load()  # raises unless somebody put it there
        _marker(name, cache_dir).touch()
    return load


def _description(name: str) -> dict[str, Any]:
    from fastembed import TextEmbedding

    for description in TextEmbedding.list_supported_models():
        if description["model"].lower() == name.lower():
            return description
    raise ModelMissingError(
        f"There is no embedding model named {name!r}.",
        hint="Run 'qmd models list' to see the models.",
    )


def _directory(cache_dir: Path) -> Path:
    return cache_dir / "fastembed"


def _marker(name: str, cache_dir: Path) -> Path:
    return _directory(cache_dir) / (re.sub(r"[^\w.-]", "--", name.lower()) + ".ready")
