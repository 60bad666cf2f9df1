"""Values that are kept packed come back in their order, and take little memory meanwhile."""

from __future__ import annotations

import tracemalloc

import pytest

from qmd.ingest.scan import PackedRows, ScannedFile
from qmd.values import FileState


def file_of(row: tuple[str, tuple[int, int, int, int]]) -> ScannedFile:
    path, state = row
    return ScannedFile(path, FileState(*state))


def row(number: int) -> tuple[str, tuple[int, int, int, int]]:
    moment = 1_700_000_000_000_000_000 + number
    return f"folder/笔记 {number}.md", (4_000 + number, moment, (1 << 62) + number, 64_769)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 600])
def test_values_come_back_in_order_to_each_reader(count: int) -> None:
    files = PackedRows(file_of)
    for number in range(count):
        files.append(row(number))
    expected = [file_of(row(number)) for number in range(count)]
    assert len(files) == count
    assert list(zip(files, files, strict=True)) == list(zip(expected, expected, strict=True))
    assert list(PackedRows(file_of, map(row, range(count)))) == expected


@pytest.mark.unmeasured
def test_a_file_takes_less_than_a_hundred_bytes() -> None:
    tracemalloc.start()
    files = PackedRows(file_of, map(row, range(20_000)))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(files) < 100
