"""
A folder with a model in it: an ONNX file and ``tokenizer.json``, as exporters write them.

What else must be known stands in the files of sentence-transformers, if they are there, or in
``qmd.json``, which beats them::

    {"pooling": "cls", "query_prefix": "query: ", "passage_prefix": "passage: ",
     "max_tokens": 512, "file": "onnx/model_int8.onnx"}
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError, ModelMissingError
from qmd.inference.families import Pooling, family
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
#: Memory grows with the square of the length; what is longer is embedded in parts.
_MOST_TOKENS = 2048
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
# Over all tokens: without a batch there is no padding.
_POOLED: dict[Pooling, Callable[[Any], Any]] = {
    "cls": lambda tokens: tokens[0],
    "last": lambda tokens: tokens[-1],
    "max": lambda tokens: tokens.max(0),
    "mean": lambda tokens: tokens.mean(0),
}
_NAMED: dict[object, Pooling] = {
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
    What the files of a folder say; nothing is loaded.

    ``dimension`` is None where only running the model can tell.
    """

    path: Path
    file: Path
    pooling: Pooling
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    dimension: int | None
    dense: bool
    fingerprint: str

    @property
    def name(self) -> str:
        return str(self.path)

    def spec(self) -> ModelSpec:
        """Loads the model only if the files do not tell its dimension. Raises InferenceError."""
        dimension = self.dimension
        if dimension is None:
            dimension = len(OnnxText(self).vector("dimension"))
        return ModelSpec(
            name=self.name,
            fingerprint=self.fingerprint,
            dimension=dimension,
            max_tokens=self.max_tokens,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
        )


def absolute(name: str) -> Path:
    """The folder's whole path; symbolic links stay what they are."""
    return Path(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111


def is_there(name: str) -> bool:
    """Whether the folder holds a model and its tokenizer."""
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
    told = _json(path / "qmd.json")
    file = _model_file(path, told)
    if not (path / "tokenizer.json").is_file():
        raise ModelMissingError(
            f"There is no tokenizer.json in {path}.",
            hint="It lies beside the model where that was exported; put it there.",
        )
    modules = _json(path / "modules.json", list)
    kinds = [str(each.get("type", "")) for each in modules if isinstance(each, dict)]
    pooling_file = next(
        (
            path / str(each.get("path", "")) / "config.json"
            for each in modules
            if isinstance(each, dict) and str(each.get("type", "")).endswith("Pooling")
        ),
        path / "1_Pooling" / "config.json",
    )
    saved = _json(pooling_file)
    config = _json(path / "config.json")
    known = family(f"{path.name} {config.get('_name_or_path', '')}")
    prompts = _json(path / "config_sentence_transformers.json").get("prompts")
    query = _prompt(prompts, ("query", "retrieval.query", "search_query", "s2p_query"))
    passage = _prompt(
        prompts, ("passage", "document", "retrieval.passage", "search_document", "corpus")
    )
    query = told.get("query_prefix", known.query_prefix if query is None else query)
    passage = told.get("passage_prefix", known.passage_prefix if passage is None else passage)
    pooling = _pooling(told.get("pooling"), saved, path) or known.pooling
    dense = any(kind.endswith("Dense") for kind in kinds)
    dimension = saved.get("word_embedding_dimension", config.get("hidden_size"))
    return OnnxFolder(
        path=path,
        file=file,
        pooling=pooling,
        max_tokens=_max_tokens(path, told, config),
        query_prefix=str(query),
        passage_prefix=str(passage),
        # A layer behind the pooling may change it, and so may what the exporter built in.
        dimension=dimension if type(dimension) is int and dimension > 0 and saved else None,
        dense=dense,
        fingerprint=f"onnx:{_digest(file, path / 'tokenizer.json')}|{pooling}|{query}|{passage}",
    )


def _model_file(path: Path, told: Mapping[str, Any]) -> Path:
    if isinstance(told.get("file"), str):
        file: Path = path / told["file"]
        if file.is_file():
            return file
        raise ModelMissingError(
            f"There is no {told['file']} in {path}.", hint="qmd.json names it; mend that."
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


def _pooling(told: object, saved: Mapping[str, Any], path: Path) -> Pooling | None:
    if told is not None:
        if told in _NAMED:
            return _NAMED[told]
        raise InferenceError(
            f"No such pooling in {path / 'qmd.json'}: {told}", hint="mean, cls, last or max."
        )
    modes = [mode for key, mode in _POOLINGS.items() if saved.get(key) is True]
    named = saved.get("pooling_mode")
    if isinstance(named, str) and not modes:
        modes = [_NAMED[named]] if named in _NAMED else []
    others = [key for key in saved if str(key).startswith("pooling_mode_") and saved[key] is True]
    if len(modes) > 1 or (named and not modes) or (others and not modes):
        raise InferenceError(
            f"The pooling of the model in {path} is none that qmd knows.",
            hint="mean, cls, last or max; qmd.json can say which.",
        )
    return modes[0] if modes else None


def _max_tokens(path: Path, told: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    places = (
        told.get("max_tokens"),
        _json(path / "sentence_bert_config.json").get("max_seq_length"),
        _json(path / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    for found in places:
        # "No limit" is written as 1e30.
        if type(found) is int and 8 <= found < 1_000_000:
            return min(found, _MOST_TOKENS)
    return _UNKNOWN_MAX_TOKENS


def _prompt(prompts: object, names: Iterable[str]) -> str | None:
    if not isinstance(prompts, dict):
        return None
    return next((prompts[name] for name in names if isinstance(prompts.get(name), str)), None)


def _json(file: Path, kind: type = dict) -> Any:
    """The JSON object (or list) in a file, an empty one if there is no file."""
    try:
        found = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return kind()
    except (OSError, ValueError, RecursionError) as error:
        raise InferenceError(f"Cannot read {file}: {error}", hint="Mend or remove it.") from error
    if not isinstance(found, kind):
        raise InferenceError(f"{file} holds no JSON {kind.__name__}.", hint="Mend or remove it.")
    return found


def _digest(*files: Path) -> str:
    """Of sizes and samples: reading a gigabyte at each start would take longer than loading it."""
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


class OnnxRun:
    """
    One ONNX model and its tokenizer, a text (or a pair) at a time.

    ``threads``: how many cores one run may use; None for all.

    Raises:
        InferenceError: It cannot be loaded, or wants inputs that we do not make.
    """

    def __init__(self, folder: OnnxFolder, *, threads: int | None = 1) -> None:
        import numpy as np
        import onnxruntime
        from tokenizers import Tokenizer

        from qmd.inference.fastembedder import quiet_libraries

        quiet_libraries()
        options = onnxruntime.SessionOptions()
        if threads is not None:
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
        try:
            self.session = onnxruntime.InferenceSession(
                str(folder.file), options, providers=["CPUExecutionProvider"]
            )
            self.tokenizer = Tokenizer.from_file(str(folder.path / "tokenizer.json"))
        except Exception as error:  # onnxruntime's and tokenizers' share no other base
            raise InferenceError(
                f"Cannot load the model in {folder.path}: {error}",
                hint="Is it whole? Export or copy it again.",
            ) from error
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(folder.max_tokens)
        self.tokenizer.encode_special_tokens = True  # in a note, "</s>" are characters
        self.folder = folder
        self._types: dict[str, Any] = {}
        for each in self.session.get_inputs():
            if each.name not in {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
                raise InferenceError(
                    f"The model in {folder.path} wants the input {each.name!r}.",
                    hint="Export it for feature extraction, without a cache of past keys.",
                )
            self._types[each.name] = np.int32 if "int32" in each.type else np.int64
        self._outputs = [each.name for each in self.session.get_outputs()]

    def run(self, text: str, second: str | None = None) -> dict[str, NDArray[np.float32]]:
        """The outputs by name, the first first, without the dimension of the batch."""
        import numpy as np

        encoding = self.tokenizer.encode(text, second)
        values = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
            "position_ids": list(range(len(encoding.ids))),
        }
        feed = {name: np.array([values[name]], kind) for name, kind in self._types.items()}
        outputs = self.session.run(self._outputs, feed)
        return {
            name: np.asarray(output, np.float32)[0]
            for name, output in zip(self._outputs, outputs, strict=True)
        }


class OnnxText(OnnxRun):
    """Texts to vectors, for `FastEmbedder`."""

    def embed(self, texts: Iterable[str], /, batch_size: int = 1) -> Iterator[NDArray[np.float32]]:
        """One by one, whatever ``batch_size``: a vector must not depend on its neighbours."""
        return (self.vector(text) for text in texts)

    def vector(self, text: str) -> NDArray[np.float32]:
        """float32[dimension], of any length. Raises InferenceError."""
        outputs = self.run(text)
        # An exporter may have built pooling (and more) into the graph.
        tokens = outputs.get("sentence_embedding", next(iter(outputs.values())))
        if tokens.ndim == 1:
            return tokens
        if tokens.ndim != 2 or self.folder.dense:
            raise InferenceError(
                f"The model in {self.folder.path} gives no vector for each token, and none for"
                " the text.",
                hint="Export it for feature extraction.",
            )
        found: NDArray[np.float32] = _POOLED[self.folder.pooling](tokens)
        return found
