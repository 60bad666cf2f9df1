"""Reads and writes the settings that belong to the database file."""

from __future__ import annotations

from qmd.store.sqlite.library import Connection


def read(connection: Connection, key: str, *, table: str = "z_meta") -> str | None:
    """``table``: its name in a file of an older version."""
    row = connection.execute(f"SELECT value FROM {table} WHERE key = ?", [key]).fetchone()
    return None if row is None else str(row[0])


def put(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO z_meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [key, value],
    )


class SqliteMeta:
    """`qmd.store.meta.Meta` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> str | None:
        return read(self._connection, key)


class SqliteMetaWriter(SqliteMeta):
    """`qmd.store.meta.MetaWriter` in SQLite."""

    def put(self, key: str, value: str) -> None:
        put(self._connection, key, value)
