"""
Reads ``e5-small-q4.bin``, the weights of intfloat/multilingual-e5-small in 4 bits.

The file (little-endian): a header; the vocabulary of a SentencePiece Unigram tokenizer
as offsets, scores and one blob; a table of character normalizations, which we skip (see
`tokenizer`); a directory of tensors with offsets from the start of the file. Quantized
tensors are ggml Q4_0 blocks of 32 weights: a float16 scale and 16 bytes whose low nibbles
are the first half of the block, a weight being ``scale * (nibble - 8)``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

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
