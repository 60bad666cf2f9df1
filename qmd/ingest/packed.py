"""Many small values in little memory."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: So many rows are unpacked at once.
_BLOCK = 256


class PackedRows(Generic[T]):
    """
    Values in the order in which they were added, each kept as a row of plain values.

    The path and the state of a file take some seventy bytes so, as objects nearly four hundred.

    Args:
        value_of: Makes a value of its row, each time that it is read.
    """

    def __init__(
        self, value_of: Callable[[tuple[Any, ...]], T], rows: Iterable[tuple[Any, ...]] = ()
    ) -> None:
        self._value_of = value_of
        self._packed: list[bytes] = []
        self._unpacked: list[tuple[Any, ...]] = []
        for row in rows:
            self.append(row)

    def append(self, row: tuple[Any, ...]) -> None:
        self._unpacked.append(row)
        if len(self._unpacked) == _BLOCK:
            self._packed.append(marshal.dumps(self._unpacked))
            self._unpacked = []

    def __len__(self) -> int:
        return len(self._packed) * _BLOCK + len(self._unpacked)

    def __iter__(self) -> Iterator[T]:
        for block in self._packed:
            yield from map(self._value_of, marshal.loads(block))  # noqa: S302 - made in `append`
        yield from map(self._value_of, self._unpacked)
