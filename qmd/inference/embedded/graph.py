"""
Writes the encoder as an ONNX graph for onnxruntime, byte by byte.

Token embeddings stay in 4 bits (two thirds of the file; one row is read per token). The matrices
become int8 with one scale per output: onnxruntime's dynamic int8 product is about twice as fast as
the 4-bit one. The file takes 84 MB; with int8 throughout it would take 118 MB.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmd.inference.embedded.weights import BLOCK, EncoderWeights, EnglishWeights

# --- the parts of a model as bytes ------------------------------------------------------
# Nodes, tensors and the model are messages of Protocol Buffers, of which a graph needs few fields.
# The package onnx writes the same bytes (a test compares them) and takes 31 MB.
#
# Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

#: Of `onnx_tensor`: the types of elements.
FLOAT, INT8, INT64, UINT4 = 1, 3, 7, 21

_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_VARINT, _LENGTH, _FIXED_32 = 0, 2, 5


def onnx_node(
    kind: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    domain: str,
    attributes: Mapping[str, float | int | Sequence[int]],
) -> bytes:
    """An operation."""
    return b"".join(
        [
            *(_text(1, name) for name in inputs),
            *(_text(2, name) for name in outputs),
            _text(4, kind),
            *(_bytes(5, _attribute(name, attributes[name])) for name in sorted(attributes)),
            _text(7, domain),
        ]
    )


def onnx_tensor(name: str, shape: Iterable[int], element_type: int, data: bytes) -> bytes:
    """A constant; ``data`` as numpy has it, little-endian."""
    return b"".join(
        [
            *(_number(1, size) for size in shape),
            _number(2, element_type),
            _text(8, name),
            _bytes(9, data),
        ]
    )


def onnx_value(name: str, element_type: int, shape: Iterable[str | int]) -> bytes:
    """An input or output; a size that is not fixed is a name."""
    dimensions = b"".join(
        _bytes(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape
    )
    tensor_type = _number(1, element_type) + _bytes(2, dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, tensor_type))


def onnx_model(
    name: str,
    nodes: Iterable[bytes],
    tensors: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    *,
    ir_version: int,
    opsets: Mapping[str, int],
) -> bytes:
    """
    The whole file.

    Args:
        opsets: Domain → the version of its operations.
    """
    graph = b"".join(
        [
            *(_bytes(1, each) for each in nodes),
            _text(2, name),
            *(_bytes(5, each) for each in tensors),
            *(_bytes(11, each) for each in inputs),
            *(_bytes(12, each) for each in outputs),
        ]
    )
    return b"".join(
        [
            _number(1, ir_version),
            _text(2, "qmd"),
            _bytes(7, graph),
            *(_bytes(8, _text(1, each) + _number(2, opsets[each])) for each in opsets),
        ]
    )


def _attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    if isinstance(value, float):
        return (
            _text(1, name) + _key(2, _FIXED_32) + struct.pack("<f", value) + _type(_ATTRIBUTE_FLOAT)
        )
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _type(_ATTRIBUTE_INT)
    return _text(1, name) + b"".join(_number(8, each) for each in value) + _type(_ATTRIBUTE_INTS)


def _type(kind: int) -> bytes:
    return _number(20, kind)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, data: bytes) -> bytes:
    return _key(field, _LENGTH) + _varint(len(data)) + data


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # a negative number has all its 64 bits
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


# --- the graph of an encoder ------------------------------------------------------------

OUTPUT = "last_hidden_state"
# What the graph needs, so that an older onnxruntime can still load it.
_OPSET, _IR_VERSION = 21, 10
_MICROSOFT = "com.microsoft"
_MASKED = -1e9
_ELEMENT_TYPES = {
    "float32": FLOAT,
    "int8": INT8,
    "int64": INT64,
}
# Processors without VNNI add two products of a uint8 and an int8 in 16 bits, saturating. With
# 2 * 255 * 63 they cannot, so all give the same sums. It costs no accuracy: mean cosine to
# the float32 graph .9972 (127: .9976), error of a cosine between two texts .0026 (.0031).
_INT8_MAX = 63


def encoder_graph(weights: EncoderWeights) -> bytes:
    """
    The serialized model, the same bytes at every run.

    Inputs ``input_ids`` and ``attention_mask``, int64 (batch, tokens); output
    ``last_hidden_state``, float32 (batch, tokens, hidden).
    """
    builder = _Builder(weights)
    builder.node("Identity", [builder.encoder()], output=OUTPUT)
    return builder.serialize()


def english_graph(weights: EnglishWeights) -> bytes:
    """As `encoder_graph`, for the model of English; its token embeddings stay in 8 bits."""
    builder = _EnglishBuilder(weights)
    builder.node("Identity", [builder.encoder()], output=OUTPUT)
    return builder.serialize()


class _Builder:
    """Collects nodes and constants; each method returns the name of a value."""

    def __init__(self, weights: EncoderWeights | EnglishWeights) -> None:
        self._weights = weights
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}

    # -- graph building ----------------------------------------------------------------

    def node(
        self,
        kind: str,
        inputs: list[str],
        *,
        domain: str = "",
        output: str | None = None,
        **attributes: Any,
    ) -> str:
        name = output or f"v{len(self._nodes)}"
        self._nodes.append(onnx_node(kind, inputs, [name], domain, attributes))
        return name

    def constant(self, name: str, array: NDArray[Any]) -> str:
        if name not in self._constants:
            element_type = _ELEMENT_TYPES[array.dtype.name]
            rows = np.ascontiguousarray(array)  # which makes a row of a number
            constant = onnx_tensor(name, rows.shape, element_type, rows.tobytes())
            self._constants[name] = constant
        return name

    def uint4(self, name: str, packed: NDArray[Any]) -> str:
        """Two values a byte along the last axis, the first in the low nibble."""
        shape = (*packed.shape[:-1], packed.shape[-1] * 2)
        data = packed.tobytes()
        self._constants[name] = onnx_tensor(name, shape, UINT4, data)
        return name

    def integers(self, *values: int) -> str:
        return self.constant("i" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"f{value!r}", np.array(value, np.float32))

    def serialize(self) -> bytes:
        inputs = [
            onnx_value(name, INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")
        ]
        output = onnx_value(OUTPUT, FLOAT, ["batch", "tokens", self._weights.hidden])
        return onnx_model(
            "e5",
            self._nodes,
            self._constants.values(),
            inputs,
            [output],
            ir_version=_IR_VERSION,
            opsets={"": _OPSET, _MICROSOFT: 1},
        )

    # -- the encoder -------------------------------------------------------------------

    def encoder(self) -> str:
        hidden = self._layer_norm(
            self.node("Add", [self._token_embeddings(), self._position_embeddings()]), "emb.ln"
        )
        mask = self._attention_mask()
        for layer in range(self._weights.layers):
            hidden = self._layer(hidden, mask, f"l{layer}.")
        return hidden

    def _token_embeddings(self) -> str:
        assert isinstance(self._weights, EncoderWeights)
        rows, width = self._weights.vocabulary_rows, self._weights.hidden
        blocks = width // BLOCK
        scales, values = self._weights.nibbles("emb.word")
        values = values.reshape(rows, width)
        packed = values[:, 0::2] | (values[:, 1::2] << 4)
        zeros = np.full((rows, blocks // 2), 0x88, np.uint8)  # 8 in both nibbles
        return self.node(
            "GatherBlockQuantized",
            [
                self.uint4("emb.word.values", packed),
                "input_ids",
                self.constant("emb.word.scales", scales.reshape(rows, blocks)),
                self.uint4("emb.word.zeros", zeros),
            ],
            domain=_MICROSOFT,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )

    def _position_embeddings(self) -> str:
        width = self._weights.hidden
        positions = self._weights.float32("emb.pos").reshape(-1, width)
        types = self._weights.float32("emb.type").reshape(-1, width)
        table = self.constant("emb.positions", positions + types[0])
        length = self.node("Gather", [self.node("Shape", ["input_ids"]), self.integers(1)], axis=0)
        return self.node("Slice", [table, self.integers(0), length, self.integers(0)])

    def _attention_mask(self) -> str:
        """0 for a token and a large negative number for padding, (batch, 1, 1, tokens)."""
        is_token = self.node("Cast", ["attention_mask"], to=FLOAT)
        is_token = self.node("Unsqueeze", [is_token, self.integers(1, 2)])
        padding = self.node("Sub", [self.number(1.0), is_token])
        return self.node("Mul", [padding, self.number(_MASKED)])

    def _layer(self, hidden: str, mask: str, prefix: str) -> str:
        attended = self._linear(self._attention(hidden, mask, prefix), prefix + "ao")
        hidden = self._layer_norm(self.node("Add", [hidden, attended]), prefix + "aln")
        inner = self.node("Gelu", [self._linear(hidden, prefix + "fi")], domain=_MICROSOFT)
        outer = self._linear(inner, prefix + "fo")
        return self._layer_norm(self.node("Add", [hidden, outer]), prefix + "oln")

    def _attention(self, hidden: str, mask: str, prefix: str) -> str:
        heads, width = self._weights.heads, self._weights.hidden
        head_width = width // heads

        def split(name: str, order: list[int]) -> str:
            projected = self._linear(hidden, prefix + name)
            shape = self.integers(0, 0, heads, head_width)
            return self.node("Transpose", [self.node("Reshape", [projected, shape])], perm=order)

        query, key, value = (
            split("q", [0, 2, 1, 3]),
            split("k", [0, 2, 3, 1]),
            split("v", [0, 2, 1, 3]),
        )
        scores = self.node(
            "Mul", [self.node("MatMul", [query, key]), self.number(1 / math.sqrt(head_width))]
        )
        attention = self.node("Softmax", [self.node("Add", [scores, mask])], axis=-1)
        mixed = self.node("MatMul", [attention, value])
        mixed = self.node("Transpose", [mixed], perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, self.integers(0, 0, width)])

    def _linear(self, value: str, name: str) -> str:
        """``value @ W.T + b`` in int8, activations scaled at run time."""
        bias = self._weights.float32(f"{name}.b")
        matrix = self._weights.matrix(f"{name}.w", len(bias))
        output_scales = np.abs(matrix).max(axis=1) / _INT8_MAX
        quantized = np.rint(matrix / output_scales[:, None]).astype(np.int8)
        return self.node(
            "DynamicQuantizeMatMul",
            [
                value,
                self.constant(f"{name}.values", quantized.T),
                self.constant(f"{name}.scales", output_scales.astype(np.float32)),
                self.constant(f"{name}.zeros", np.zeros(len(bias), np.int8)),
                self.constant(f"{name}.bias", bias),
            ],
            domain=_MICROSOFT,
        )

    def _layer_norm(self, value: str, name: str) -> str:
        return self.node(
            "LayerNormalization",
            [
                value,
                self.constant(f"{name}.w", self._weights.float32(f"{name}.w")),
                self.constant(f"{name}.b", self._weights.float32(f"{name}.b")),
            ],
            axis=-1,
            epsilon=float(self._weights.epsilon),
        )


class _EnglishBuilder(_Builder):
    def _token_embeddings(self) -> str:
        assert isinstance(self._weights, EnglishWeights)
        values, scales = self._weights.rows("word")
        rows = self.node("Gather", [self.constant("emb.word.values", values), "input_ids"], axis=0)
        factors = self.constant("emb.word.scales", scales)
        factor = self.node("Gather", [factors, "input_ids"], axis=0)
        return self.node("Mul", [self.node("Cast", [rows], to=FLOAT), factor])
