"""New documents are stored in the order in which they fill the pages of their table."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from qmd.store.sqlite.upkeep import PAGE_BYTES, filling_order


def pages(path: Path, rows: list[tuple[object, ...]]) -> int:
    """The pages of a table with these rows."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, a TEXT, b TEXT)")
    connection.executemany("INSERT INTO t (n, a, b) VALUES (?, ?, ?)", rows)
    connection.commit()
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    connection.close()
    return int(count)


def test_long_rows_leave_little_of_their_pages_empty(tmp_path: Path) -> None:
    chance = random.Random(1)
    rows: list[tuple[object, ...]] = [
        (chance.randrange(1 << 40), "é", "x" * chance.randrange(1000, 12_000)) for _ in range(256)
    ]
    order = filling_order(rows)
    assert sorted(order) == list(range(256))
    needed = sum(len(str(row[2])) for row in rows) / PAGE_BYTES
    assert pages(tmp_path / "a.sqlite", rows) > 1.1 * needed
    assert pages(tmp_path / "b.sqlite", [rows[position] for position in order]) < 1.05 * needed


@pytest.mark.parametrize("length", [0, 10, 900])
def test_short_rows_stay_in_order(length: int) -> None:
    rows = [(number, "title", "x" * length) for number in range(100)]
    assert filling_order(rows) == list(range(100))


def test_rows_of_one_size_stay_in_order() -> None:
    rows = [(1, name, "x" * size) for size in (3000, 9000, 1500) for name in ("a", "b", "c")] * 3
    order = filling_order(rows)
    for size in (3000, 9000, 1500):
        positions = [each for each in order if len(rows[each][2]) == size]
        assert positions == sorted(positions)


def test_nothing_has_an_order() -> None:
    assert filling_order([]) == []
