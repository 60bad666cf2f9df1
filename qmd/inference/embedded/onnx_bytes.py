"""
Writes the parts of an ONNX model as bytes: nodes, tensors, the model.

These are messages of Protocol Buffers, of which a graph needs few fields. The package onnx writes
the same bytes (a test compares them) and takes 31 MB.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

#: Of `tensor`: the types of elements.
FLOAT, INT8, INT64, UINT4 = 1, 3, 7, 21

_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_VARINT, _LENGTH, _FIXED_32 = 0, 2, 5


def node(
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


def tensor(name: str, shape: Iterable[int], element_type: int, data: bytes) -> bytes:
    """A constant; ``data`` as numpy has it, little-endian."""
    return b"".join(
        [
            *(_number(1, size) for size in shape),
            _number(2, element_type),
            _text(8, name),
            _bytes(9, data),
        ]
    )


def value(name: str, element_type: int, shape: Iterable[str | int]) -> bytes:
    """An input or output; a size that is not fixed is a name."""
    dimensions = b"".join(
        _bytes(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape
    )
    tensor_type = _number(1, element_type) + _bytes(2, dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, tensor_type))


def model(
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
