"""Inputs that are nearly right: valid ones, changed here and there by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.support import growth

#: What parsers look for, and numbers at the edges of their types.
TOKENS = (
    *(unit.encode("utf-8", "surrogatepass") for unit in growth.UNITS),
    *(b"\0", b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\x80", b"\r\n", b"\n\n", b"```", b"---\n"),
    *(b"null", b"NaN", b"-1", b"1e999", b"99999999999999999999", b"true", b"{}", b"[]", b'""'),
    *(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x01", b"\x00\x08"),
)
MOST_BYTES = 60_000


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, 1 to 12 times changed; at most `MOST_BYTES` long."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 3, 5, 12))):
        _change(chance, data, seeds)
        del data[MOST_BYTES:]
    return bytes(data)


def _change(chance: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    start = chance.randint(0, len(data))
    end = min(len(data), start + chance.choice((1, 2, 4, 16, 200)))
    kind = chance.randrange(7)
    if kind == 0 and start < len(data):
        data[start] ^= 1 << chance.randrange(8)
    elif kind == 1 and start < len(data):
        data[start] = chance.randrange(256)
    elif kind == 2:
        del data[start:end]
    elif kind == 3:
        data[start:start] = data[start:end] * chance.choice((1, 2, 50))
    elif kind == 4:
        data[start:start] = chance.choice(TOKENS) * chance.choice((1, 1, 2, 300))
    elif kind == 5:
        data[start:end] = chance.choice(TOKENS)
    else:
        other = chance.choice(seeds)
        cut = chance.randint(0, len(other))
        data[start:] = other[cut:]
