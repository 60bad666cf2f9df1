"""
Reads ``e5-small-q4.bin``, the weights of intfloat/multilingual-e5-small in 4 bits.

The file (little-endian): a header; the vocabulary of a SentencePiece Unigram tokenizer
as offsets, scores and one blob; a table of character normalizations, which we skip; a directory
of tensors with offsets from the start of the file. Quantized tensors are ggml Q4_0 blocks of 32
weights: a float16 scale and 16 bytes whose low nibbles are the first half of the block, a weight
being ``scale * (nibble - 8)``.

`EnglishWeights` are those of all-MiniLM-L6-v2, which come as an ONNX file: matrices and embeddings
in 8 bits, one scale for each row or output. Only its constants are read.

Of the vocabulary `tokenizer_files` makes the files that Hugging Face's `tokenizers` and fastembed
read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK = 32
_BLOCK_BYTES = 18


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """``pieces[id]`` is (text, log probability)."""

    pieces: tuple[tuple[str, float], ...]
    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """An encoder's dimensions, vocabulary and tensors, by the names of the file."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary_rows: int
    epsilon: float
    vocabulary: Vocabulary
    _data: bytes
    _tensors: Mapping[str, tuple[int, int]]  # name: (offset, bytes)

    def float32(self, name: str) -> NDArray[np.float32]:
        """The tensor as float32[n], without a shape."""
        offset, size = self._tensors[name]
        tensor: NDArray[np.float32] = np.frombuffer(self._data, "<f4", size // 4, offset).copy()
        return tensor

    def nibbles(self, name: str) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """A quantized tensor: scales, float32[blocks], and values 0..15, uint8[blocks, 32]."""
        offset, size = self._tensors[name]
        blocks = np.frombuffer(self._data, np.uint8, size, offset).reshape(-1, _BLOCK_BYTES)
        scales = blocks[:, :2].copy().view("<f2").astype(np.float32)[:, 0]
        packed = blocks[:, 2:]
        return scales, np.concatenate([packed & 15, packed >> 4], axis=1)

    def matrix(self, name: str, outputs: int) -> NDArray[np.float32]:
        """A quantized matrix: float32[outputs, inputs]."""
        scales, nibbles = self.nibbles(name)
        matrix: NDArray[np.float32] = (nibbles.astype(np.float32) - 8) * scales[:, None]
        return matrix.reshape(outputs, -1)


class EnglishWeights:
    """
    The weights of all-MiniLM-L6-v2, by the names that `EncoderWeights` has for such tensors.

    Args:
        data: The ONNX file; the caller has checked the hash.
    """

    hidden, layers, heads, epsilon = 384, 6, 12, 1e-12
    #: The matrices of a layer in the order of the file, whose names are numbers.
    _MATRICES = ("q", "k", "v", "ao", "fi", "fo")
    _NAMES: Mapping[str, str] = {
        "q": "attention.self.query",
        "k": "attention.self.key",
        "v": "attention.self.value",
        "ao": "attention.output.dense",
        "aln": "attention.output.LayerNorm",
        "fi": "intermediate.dense",
        "fo": "output.dense",
        "oln": "output.LayerNorm",
    }

    def __init__(self, data: bytes) -> None:
        self._tensors = _constants(data)
        numbers = sorted(
            int(name[4:-2])
            for name in self._tensors
            if name.startswith("val_") and name.endswith("_q")
        )
        names = [f"l{layer}.{each}.w" for layer in range(self.layers) for each in self._MATRICES]
        self._matrices = dict(zip(names, numbers, strict=True))

    def rows(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Embeddings: int8[rows, hidden], and float32[rows, 1], by which they are multiplied."""
        full = f"inner.embeddings.{name}_embeddings.weight"
        return self._tensors[f"{full}_q"], self._tensors[f"{full}_scale"]

    def float32(self, name: str) -> NDArray[np.float32]:
        if name == "emb.pos":
            values, scales = self.rows("position")
            return values * scales
        if name == "emb.type":
            return self._tensors["inner.embeddings.token_type_embeddings.weight"]
        layer, _, part = name.partition(".")
        kind = "weight" if name.endswith(".w") else "bias"
        if layer == "emb":
            return self._tensors[f"inner.embeddings.LayerNorm.{kind}"]
        inner = self._NAMES[part.partition(".")[0]]
        return self._tensors[f"inner.encoder.layer.{layer[1:]}.{inner}.{kind}"]

    def matrix(self, name: str, _outputs: int) -> NDArray[np.float32]:
        values, scales = (
            self._tensors[f"val_{self._matrices[name]}_{each}"] for each in ("q", "scale")
        )
        matrix: NDArray[np.float32] = (values * scales).T
        return matrix


#: ONNX's number of a type of elements → numpy's name.
_DTYPES = {1: "<f4", 3: "i1", 7: "<i8", 9: "?"}


def _constants(model: bytes) -> dict[str, NDArray[Any]]:
    """The constants of an ONNX model by name; the message fields of `graph.onnx_tensor`."""
    (graph,) = [value for field, value in _fields(memoryview(model)) if field == 7]
    tensors = {}
    for field, message in _fields(graph):
        if field == 5:
            shape, kind, name, data = [], 0, "", b""
            for part, value in _fields(message):
                if part == 1:
                    shape.append(value)
                elif part == 2:
                    kind = value
                elif part == 8:
                    name = bytes(value).decode()
                elif part == 9:
                    data = value
            tensors[name] = np.frombuffer(data, _DTYPES[kind]).reshape(shape)
    return tensors


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers: number, and an integer or bytes."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        length = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        yield key >> 3, message[position : position + length]
        position += length


class _ByteCursor:
    """Reads values one after the other from bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def take_bytes(self, count: int) -> bytes:
        start = self.position
        self.position += count
        return self.data[start : self.position]


def read_weights(data: bytes) -> EncoderWeights:
    """
    Parse the whole file; the caller has checked the hash.

    Raises:
        ValueError: The bytes are no such file.
    """
    if not data.startswith(MAGIC):
        raise ValueError("not an E5S1 file")
    reader = _ByteCursor(data)
    reader.take_bytes(len(MAGIC) + 4)  # magic, version
    hidden, layers, heads, feed_forward, rows, _max_positions, _types = reader.take("<7i")
    (epsilon,) = struct.unpack("<f", reader.take_bytes(4))
    reader.take_bytes(4)
    vocabulary = _read_vocabulary(reader)
    _skip_normalizations(reader)
    tensors = _read_directory(reader)
    return EncoderWeights(
        hidden, layers, heads, feed_forward, rows, epsilon, vocabulary, data, tensors
    )


def _read_vocabulary(reader: _ByteCursor) -> Vocabulary:
    count, bos, eos, pad, unk = reader.take("<5i")
    (blob_size,) = reader.take("<Q")
    offsets = reader.take(f"<{count + 1}I")
    scores = struct.unpack(f"<{count}f", reader.take_bytes(4 * count))
    blob = reader.take_bytes(blob_size)
    pieces = tuple(
        (blob[offsets[i] : offsets[i + 1]].decode("utf-8"), scores[i]) for i in range(count)
    )
    return Vocabulary(pieces, bos, eos, pad, unk)


def _skip_normalizations(reader: _ByteCursor) -> None:
    _count, size = reader.take("<iI")
    reader.take_bytes(size)


def _read_directory(reader: _ByteCursor) -> dict[str, tuple[int, int]]:
    tensors = {}
    (count,) = reader.take("<i")
    for _ in range(count):
        (length,) = reader.take("<H")
        name = reader.take_bytes(length).decode("ascii")
        _type, _elements, offset, size = reader.take("<BIQQ")
        tensors[name] = (offset, size)
    return tensors


MAX_TOKENS = 512
METASPACE = "\u2581"

# The model was trained on texts after SentencePiece's nmt_nfkc rules: NFKC, but these are dropped,
_DROPPED = r"[\x{1}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
# these become a space,
_BLANKS = r"[\s\x{0}\x{200b}-\x{200f}\x{feff}\x{fffd}\x{2581}]+"
# and this one, frequent in Chinese, stays what it is.
_FULLWIDTH_TILDE, _STAND_IN = "\uff5e", "\ue000"

# Far below every ordinary piece: in a note, "<s>" and "<pad>" are characters.
_CONTROL_SCORE = -100.0


def tokenizer_files(vocabulary: Vocabulary) -> dict[str, Any]:
    """The JSON of each file, by file name."""
    special = {
        "<s>": vocabulary.bos,
        "<pad>": vocabulary.pad,
        "</s>": vocabulary.eos,
        "<unk>": vocabulary.unk,
    }
    return {
        "tokenizer.json": _tokenizer(vocabulary, special),
        "tokenizer_config.json": {"model_max_length": MAX_TOKENS, "pad_token": "<pad>"},
        "special_tokens_map.json": {
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        },
        "config.json": {"model_type": "xlm-roberta", "pad_token_id": vocabulary.pad},
    }


def _tokenizer(vocabulary: Vocabulary, special: dict[str, int]) -> dict[str, Any]:
    control = {*special, "<mask>"}
    metaspace = {
        "type": "Metaspace",
        "replacement": METASPACE,
        "prepend_scheme": "always",
        "split": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token, token_id in special.items()
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                _replace({"Regex": _DROPPED}, ""),
                _replace({"String": _FULLWIDTH_TILDE}, _STAND_IN),
                {"type": "NFKC"},
                _replace({"String": _STAND_IN}, _FULLWIDTH_TILDE),
                _replace({"Regex": _BLANKS}, " "),
            ],
        },
        "pre_tokenizer": metaspace,
        "post_processor": _post_processor(special),
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": vocabulary.unk,
            "byte_fallback": False,
            "vocab": [
                [piece, _CONTROL_SCORE if piece in control else score]
                for piece, score in vocabulary.pieces
            ],
        },
    }


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _post_processor(special: dict[str, int]) -> dict[str, Any]:
    def token(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def sequence(name: str) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": 0}}

    first = [token("<s>"), sequence("A"), token("</s>")]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, token("</s>"), sequence("B"), token("</s>")],
        "special_tokens": {
            name: {"id": name, "ids": [special[name]], "tokens": [name]} for name in ("<s>", "</s>")
        },
    }
