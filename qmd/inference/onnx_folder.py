"""
A folder with a model in it: an ONNX file and ``tokenizer.json``, as exporters write them.

Pooling, prefixes and lengths come from the files of sentence-transformers, if there are any, or
from ``qmd.json``, which overrides them::

    {"pooling": "cls", "query_prefix": "query: ", "passage_prefix": "passage: ",
     "max_tokens": 512, "file": "onnx/model_int8.onnx"}
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qmd import inference
from qmd.errors import InferenceError, ModelMissingError
from qmd.inference.families import Family, Pooling, family
from qmd.values import ModelSpec

#: Where exporters put the model, the most exact first.
_FILES = tuple(
    folder + name
    for name in (
        "model.onnx",
        "model_optimized.onnx",
        "model_fp16.onnx",
        "model_int8.onnx",
        "model_quantized.onnx",
        "model_uint8.onnx",
    )
    for folder in ("", "onnx/")
)
_UNKNOWN_MAX_TOKENS = 512
#: Under which names the prompts of sentence-transformers stand.
_QUERY_PROMPTS = ("query", "retrieval.query", "search_query", "s2p_query")
_PASSAGE_PROMPTS = ("passage", "document", "retrieval.passage", "search_document", "corpus")
#: Memory grows with the square of the length, so longer texts are split (see `FastEmbedder`).
_LONGEST_TOKENS = 2048
_POOLING_SWITCHES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_POOLING_NAMES: dict[str, Pooling] = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "last": "last",
    "lasttoken": "last",
}


def is_folder(name: str) -> bool:
    """Whether a model's name is a path: it begins with ``/``, ``~`` or ``.``, or a drive."""
    return name.startswith(("/", "~", ".", "\\")) or Path(name).is_absolute()


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """
    A model as the files of a folder describe it; nothing is loaded.

    Attributes:
        described: Its dimension is 0 where only running the model can tell it.
    """

    path: Path
    file: Path
    pooling: Pooling
    has_dense_layer: bool
    described: ModelSpec

    def spec(self) -> ModelSpec:
        """Loads the model only if no file tells the dimension. Raises InferenceError."""
        if self.described.dimension:
            return self.described
        # Imported late: onnxruntime takes most of a second.
        vector = inference.onnx_model.OnnxTextModel(self).vector("dimension")
        return replace(self.described, dimension=len(vector))


def absolute(name: str) -> Path:
    """The folder's whole path; symbolic links are not followed."""
    return Path(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111


def is_there(name: str) -> bool:
    """Whether the folder holds a model with a tokenizer."""
    try:
        read(name)
    except InferenceError:
        return False
    return True


def read(name: str) -> OnnxFolder:
    """
    Raises:
        ModelMissingError: There is no such folder, or no model in it.
        InferenceError: One of its files cannot be understood.
    """
    path = absolute(name)
    if not path.is_dir():
        raise ModelMissingError(
            f"There is no folder {path}.", hint="Give a folder that holds model.onnx."
        )
    overrides = _json(path / "qmd.json")
    file = _model_file(path, overrides)
    if not (path / "tokenizer.json").is_file():
        raise ModelMissingError(
            f"There is no tokenizer.json in {path}.",
            hint="It lies beside the model where that was exported; put it there.",
        )
    modules = [each for each in _json(path / "modules.json", list) if isinstance(each, dict)]
    pooling_config = _json(_pooling_file(path, modules))
    config = _json(path / "config.json")
    model_family = family(f"{path.name} {config.get('_name_or_path', '')}")
    query, passage = _prefixes(path, overrides, model_family)
    pooling = (
        _pooling_of_overrides(overrides, path)
        or _pooling_of_config(pooling_config, path)
        or model_family.pooling
    )
    dimension = pooling_config.get("word_embedding_dimension", config.get("hidden_size"))
    is_dimension = type(dimension) is int and dimension > 0 and bool(pooling_config)
    digest = _digest(file, path / "tokenizer.json")
    return OnnxFolder(
        path=path,
        file=file,
        pooling=pooling,
        has_dense_layer=any(_kind(each).endswith("Dense") for each in modules),
        described=ModelSpec(
            name=str(path),
            fingerprint=f"onnx:{digest}|{pooling}|{query}|{passage}",
            # A layer after the pooling may change it, and so may what the exporter built in.
            dimension=dimension if is_dimension else 0,
            max_tokens=_max_tokens(path, overrides, config),
            query_prefix=query,
            passage_prefix=passage,
        ),
    )


def _model_file(path: Path, overrides: Mapping[str, Any]) -> Path:
    if isinstance(overrides.get("file"), str):
        file: Path = path / overrides["file"]
        if file.is_file():
            return file
        raise ModelMissingError(
            f"There is no {overrides['file']} in {path}.", hint="qmd.json names it; mend that."
        )
    for name in _FILES:
        if (path / name).is_file():
            return path / name
    others = sorted([*path.glob("*.onnx"), *(path / "onnx").glob("*.onnx")])
    if len(others) == 1:
        return others[0]
    if others:
        names = ", ".join(other.relative_to(path).as_posix() for other in others)
        raise ModelMissingError(
            f"There are several models in {path}: {names}.",
            hint='Name one in qmd.json there: {"file": "' + others[0].name + '"}',
        )
    raise ModelMissingError(
        f"There is no ONNX model in {path}.",
        hint="Export one, for example with: optimum-cli export onnx --model NAME FOLDER",
    )


def _kind(module: Mapping[str, Any]) -> str:
    """The class of one of the modules that sentence-transformers runs in turn."""
    return str(module.get("type", ""))


def _pooling_file(path: Path, modules: Iterable[Mapping[str, Any]]) -> Path:
    for module in modules:
        if _kind(module).endswith("Pooling"):
            return path / str(module.get("path", "")) / "config.json"
    return path / "1_Pooling" / "config.json"


def _prefixes(path: Path, overrides: Mapping[str, Any], model_family: Family) -> tuple[str, str]:
    """What stands in front of a question, and of a passage."""
    prompts = _json(path / "config_sentence_transformers.json").get("prompts")
    query = _prompt(prompts, _QUERY_PROMPTS)
    passage = _prompt(prompts, _PASSAGE_PROMPTS)
    return (
        str(overrides.get("query_prefix", model_family.query_prefix if query is None else query)),
        str(
            overrides.get(
                "passage_prefix", model_family.passage_prefix if passage is None else passage
            )
        ),
    )


def _prompt(prompts: object, names: Iterable[str]) -> str | None:
    if not isinstance(prompts, dict):
        return None
    return next((prompts[name] for name in names if isinstance(prompts.get(name), str)), None)


def _pooling_of_overrides(overrides: Mapping[str, Any], path: Path) -> Pooling | None:
    """What ``qmd.json`` says; None if it says nothing. Raises InferenceError."""
    pooling = overrides.get("pooling")
    if pooling is None:
        return None
    if isinstance(pooling, str) and pooling in _POOLING_NAMES:
        return _POOLING_NAMES[pooling]
    raise InferenceError(
        f"No such pooling in {path / 'qmd.json'}: {pooling}", hint="mean, cls, last or max."
    )


def _pooling_of_config(config: Mapping[str, Any], path: Path) -> Pooling | None:
    """What sentence-transformers has written; None if that is nothing. Raises InferenceError."""
    switches = [str(key) for key, value in config.items() if value is True]
    modes = [mode for switch, mode in _POOLING_SWITCHES.items() if switch in switches]
    name = config.get("pooling_mode")
    if isinstance(name, str) and not modes:
        modes = [_POOLING_NAMES[name]] if name in _POOLING_NAMES else []
    says_something = bool(name) or any(each.startswith("pooling_mode_") for each in switches)
    if len(modes) > 1 or (says_something and not modes):
        raise InferenceError(
            f"The pooling of the model in {path} is none that qmd knows.",
            hint="mean, cls, last or max; qmd.json can say which.",
        )
    return modes[0] if modes else None


def _max_tokens(path: Path, overrides: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    limits = (
        overrides.get("max_tokens"),
        _json(path / "sentence_bert_config.json").get("max_seq_length"),
        _json(path / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    for limit in limits:
        # "No limit" is written as 1e30.
        if type(limit) is int and 8 <= limit < 1_000_000:
            return min(limit, _LONGEST_TOKENS)
    return _UNKNOWN_MAX_TOKENS


def _json(file: Path, kind: type = dict) -> Any:
    """The JSON object (or list) in a file, an empty one if there is no file."""
    try:
        value = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return kind()
    except (OSError, ValueError, RecursionError) as error:
        raise InferenceError(f"Cannot read {file}: {error}", hint="Mend or remove it.") from error
    if not isinstance(value, kind):
        raise InferenceError(f"{file} holds no JSON {kind.__name__}.", hint="Mend or remove it.")
    return value


def _digest(*files: Path) -> str:
    """
    A hash over the sizes and 64 samples of the files, 16 hexadecimal digits.

    Reading a gigabyte at each start would take longer than loading it.
    """
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with file.open("rb") as opened:
            step = max(1 << 16, size // 64)
            for start in range(0, size, step):
                opened.seek(start)
                digest.update(opened.read(1 << 16))
    return digest.hexdigest()[:16]
