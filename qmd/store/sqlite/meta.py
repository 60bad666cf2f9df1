"""Reads and writes the settings that belong to the database file."""

from __future__ import annotations

from qmd.store.sqlite.library import Connection


def read(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
    return None if row is None else str(row[0])


def put(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
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
