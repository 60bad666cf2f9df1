"""Databases damaged on purpose, each damage made again from its number."""

from __future__ import annotations

import random
from pathlib import Path

from qmd.store.sqlite.library import dbapi

PAGE = 4096
#: What may stand in any cell of a damaged table.
VALUES = (
    "CAST(x'ff80c3' AS TEXT)",
    "x'00ff10'",
    "x''",
    "'not a number'",
    "''",
    "char(0)",
    "'../../x'",
    "'{\"a\":'",
    "'[1,'",
    "replace(hex(zeroblob(3000)), '00', '[')",
    "-1",
    "4611686018427387904",
    "1.5",
    "9e999",
    "zeroblob(768)",
    f"x'{'007e' * 384}'",  # infinities and NaN as float16
    f"x'{'00' * 766}'",  # one number too few
)


def flip(data: bytes, seed: int) -> bytes:
    """1 to 200 bytes anywhere, or on one page, are others; not those that say it is SQLite."""
    rng = random.Random(seed)
    changed = bytearray(data)
    first, end = 100, len(data)
    if rng.random() < 0.4:
        page = rng.randrange(len(data) // PAGE)
        first, end = max(100, page * PAGE), (page + 1) * PAGE
    for _ in range(rng.choice([1, 3, 10, 40, 200])):
        changed[rng.randrange(first, end)] = rng.randrange(256)
    return bytes(changed)


def cells(database: Path) -> list[tuple[str, str]]:
    """Table and column of every ordinary table, also those that full text is made of."""
    connection = dbapi.connect(database)
    try:
        tables = connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main'"
            " AND type IN ('table', 'shadow') AND name <> 'sqlite_schema' ORDER BY name"
        ).fetchall()
        return [
            (table, column)
            for (table,) in tables
            for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")')
        ]
    finally:
        connection.close()


def set_cell(database: Path, table: str, column: str, value: str, *, every_row: bool) -> bool:
    """As a bad disk would: without triggers and foreign keys. False: SQLite takes no such value."""
    connection = dbapi.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        where = "" if every_row else f' WHERE "{column}" = (SELECT max("{column}") FROM "{table}")'
        try:
            connection.execute(f'UPDATE OR REPLACE "{table}" SET "{column}" = {value}{where}')
        except dbapi.Error:
            return False
        finally:
            for _, sql in triggers:
                connection.execute(sql)
        return True
    finally:
        connection.close()
