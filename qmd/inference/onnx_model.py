"""
Runs a model that stands in a folder: onnxruntime and its tokenizer, one text (or pair) at a time.

Importing this module imports onnxruntime and numpy; `onnx_folder` reads the files without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from qmd.errors import InferenceError
from qmd.inference.fastembedder import quiet_libraries

if TYPE_CHECKING:
    from qmd.inference.families import Pooling
    from qmd.inference.onnx_folder import OnnxFolder

_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
# Over all tokens: without a batch there is no padding.
_POOLED: dict[Pooling, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "cls": lambda tokens: tokens[0],
    "last": lambda tokens: tokens[-1],
    "max": lambda tokens: tokens.max(0),
    "mean": lambda tokens: tokens.mean(0),
}


class OnnxModel:
    """
    A loaded model; one run has one core.

    Args:
        graph: The model itself, instead of the file of the folder.

    Raises:
        InferenceError: It cannot be loaded, or needs inputs that qmd does not have.
    """

    def __init__(self, folder: OnnxFolder, graph: bytes = b"") -> None:
        quiet_libraries()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        try:
            self.session = onnxruntime.InferenceSession(
                graph or str(folder.file), options, providers=["CPUExecutionProvider"]
            )
            self.tokenizer = Tokenizer.from_file(str(folder.path / "tokenizer.json"))
        except Exception as error:  # onnxruntime's and tokenizers' share no other base
            raise InferenceError(
                f"Cannot load the model in {folder.path}: {error}",
                hint="Is it whole? Export or copy it again.",
            ) from error
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(folder.described.max_tokens)
        self.tokenizer.encode_special_tokens = True  # in a note, "</s>" are characters
        self.folder = folder
        self._input_types: dict[str, type[np.integer[Any]]] = {}
        for each in self.session.get_inputs():
            if each.name not in _INPUTS:
                raise InferenceError(
                    f"The model in {folder.path} wants the input {each.name!r}.",
                    hint="Export it for feature extraction, without a cache of past keys.",
                )
            self._input_types[each.name] = np.int32 if "int32" in each.type else np.int64
        self._output_names = [each.name for each in self.session.get_outputs()]

    def run(self, text: str, second: str | None = None) -> dict[str, NDArray[np.float32]]:
        """The outputs by name, in the order of the model, without the dimension of the batch."""
        encoding = self.tokenizer.encode(text, second)
        values = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
            "position_ids": list(range(len(encoding.ids))),
        }
        feed = {name: np.array([values[name]], kind) for name, kind in self._input_types.items()}
        outputs = self.session.run(self._output_names, feed)
        return {
            name: np.asarray(output, np.float32)[0]
            for name, output in zip(self._output_names, outputs, strict=True)
        }


class OnnxTextModel(OnnxModel):
    """A `TextModel` for `FastEmbedder`: texts to vectors."""

    def embed(self, texts: Iterable[str], /, batch_size: int = 1) -> Iterator[NDArray[np.float32]]:
        """One by one, whatever ``batch_size``: a vector must not depend on its neighbours."""
        return (self.vector(text) for text in texts)

    def vector(self, text: str) -> NDArray[np.float32]:
        """float32[dimension], not normalized. Raises InferenceError."""
        return self._pooled(self.run(text))

    def vector_and_states(
        self, text: str
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """The same, and the last layer: float32[tokens, hidden], None if the model hides it."""
        outputs = self.run(text)
        layers = [output for output in outputs.values() if output.ndim == 2]
        states = outputs.get("last_hidden_state", layers[0] if layers else None)
        return self._pooled(outputs), states

    def _pooled(self, outputs: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        # An exporter may have built pooling (and more) into the graph.
        output = outputs.get("sentence_embedding", next(iter(outputs.values())))
        if output.ndim == 1:
            return output
        if output.ndim != 2 or self.folder.has_dense_layer:
            raise InferenceError(
                f"The model in {self.folder.path} gives no vector for each token, and none for"
                " the text.",
                hint="Export it for feature extraction.",
            )
        return _POOLED[self.folder.pooling](output)


class OnnxPairModel(OnnxModel):
    """A `PairModel` for `CrossEncoder`: a question and a passage to one score."""

    def logit(self, query: str, passage: str) -> float:
        """How well the passage answers; higher is better, without bounds."""
        output = next(iter(self.run(query, passage).values()))
        if output.ndim > 1 or not output.size:
            raise InferenceError("Its output is no score: it may be an embedding model.")
        return float(output.reshape(-1)[0])
