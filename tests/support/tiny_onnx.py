"""
Real ONNX models of a few hundred bytes, made here: no hub, no weights.

Words are tokens. A word's vector comes of its hash, so texts that share words are near each
other; a cross-encoder adds up what its words are worth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = (
    *("a", "red", "boat", "lies", "in", "the", "harbour", "ship", "crossed", "ocean", "house"),
    *("stands", "town", "query", "passage", "title", "which", "good", "bad", "dimension", ":"),
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}


def write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, VOCABULARY[name]) for name in ("[CLS]", "[SEP]")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_embedder(
    folder: Path,
    dimension: int = 8,
    *,
    seed: str = "tiny",
    file: str = "model.onnx",
    pooled: str | None = None,
    only_pooled: bool = False,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    **files: Any,
) -> Path:
    """
    A folder with an embedding model.

    Args:
        seed: Another one makes another model.
        pooled: The name of a second output, the sum over all tokens.
        only_pooled: Leave out the first output, the states of the tokens.
        files: JSON files by their stem, such as ``config={"hidden_size": 8}``.
    """
    write_tokenizer(folder)
    table = np.array([_vector(f"{seed} {word}", dimension) for word in VOCABULARY], np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    outputs = [_float("last_hidden_state", ["batch", "tokens", dimension])]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", ["last_hidden_state", "axis"], [pooled],
                                      keepdims=0))  # fmt: skip
        outputs.append(_float(pooled, ["batch", dimension]))
    if only_pooled:
        del outputs[0]
    _save(folder / file, nodes, inputs, outputs, table)
    _write(folder, files)
    return folder


def write_cross_encoder(folder: Path, worth: Mapping[str, float], **files: Any) -> Path:
    """A folder with a cross-encoder: its logit is the sum of what the words are worth."""
    write_tokenizer(folder)
    table = np.array([[worth.get(word, 0.0)] for word in VOCABULARY], np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("ReduceSum", ["each", "axis"], ["logits"], keepdims=0),
    ]
    outputs = [_float("logits", ["batch", 1])]
    _save(folder / "model.onnx", nodes, ["input_ids", "token_type_ids"], outputs, table)
    _write(folder, files)
    return folder


def word_vector(word: str, dimension: int = 8, seed: str = "tiny") -> np.ndarray[Any, Any]:
    return np.array(_vector(f"{seed} {word}", dimension), np.float32)


def _vector(text: str, dimension: int) -> list[float]:
    digest = hashlib.shake_128(text.encode()).digest(dimension)
    return [byte / 128 - 1 for byte in digest]


def _save(
    file: Path,
    nodes: list[Any],
    inputs: Sequence[str],
    outputs: list[Any],
    table: np.ndarray[Any, Any],
) -> None:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"]) for n in inputs],
        outputs,
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, file)


def _float(name: str, shape: list[Any]) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    for name, value in files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
