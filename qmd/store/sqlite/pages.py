"""
In which order new rows are stored, so that they fill the pages of their table.

What a long row has left over its last full page lies beside other rows, between 500 and 4,000 bytes
of it. In the order in which documents come, a sixth of all pages stays empty.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

PAGE_BYTES = 4096
#: What a page has for the cells of rows, each with its number and its place in the page. SQLite
#: keeps so much of a row beside others, at most and at least: https://sqlite.org/fileformat2.html
_ROOM, _CELL = PAGE_BYTES - 8, 12
_MOST, _LEAST = PAGE_BYTES - 35, (PAGE_BYTES - 12) * 32 // 255 - 23
#: Shorter rows stay in order: they fill pages by themselves, and those of equal scores are common.
_SHORT = 1000


def filling_order(rows: Sequence[Sequence[object]]) -> list[int]:
    """
    The positions of rows in the order in which they fill pages; those of one size stay in order.

    A page gets the first row that is left, then the largest that still fit.
    """
    sizes = [_beside_others(_record_bytes(row)) for row in rows]
    left = sorted((size, -position) for position, size in enumerate(sizes) if size >= _SHORT)
    order: list[int] = []
    room, first = 0, 0
    placed = [False] * len(rows)
    while first < len(rows):
        fitting = bisect_right(left, (room, 0))
        if fitting:
            # Of one size the first: its negative position is the greatest.
            size, position = left.pop(fitting - 1)
            position = -position
        else:
            while first < len(rows) and placed[first]:
                first += 1
            if first == len(rows):
                break
            position, size = first, sizes[first]
            if size >= _SHORT:
                del left[bisect_left(left, (size, -position))]
            if size > room:
                room = _ROOM
        placed[position] = True
        order.append(position)
        room -= size
    return order


def _beside_others(record: int) -> int:
    """The bytes of a row that lie in a page with others."""
    if record > _MOST:
        rest = _LEAST + (record - _LEAST) % (PAGE_BYTES - 4)
        record = rest if rest <= _MOST else _LEAST
    return record + _CELL


def _record_bytes(row: Sequence[object]) -> int:
    """The bytes of a row as SQLite writes it: a header with the types, and the values."""
    total = 4
    for value in row:
        if isinstance(value, str):
            size = len(value) if value.isascii() else len(value.encode())
            total += size + (1 if size < 58 else 2 if size < 8186 else 3)
        elif isinstance(value, int):
            total += 1 + min((value.bit_length() + 8) // 8, 8)
        else:
            total += 1
    return total
