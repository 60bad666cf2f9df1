"""Reads and writes the settings that belong to the database file."""

from __future__ import annotations

from qmd.store.postgres.library import Connection


def read(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM z_meta WHERE key = %s", [key]).fetchone()
    return None if row is None else str(row[0])


def put(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO z_meta (key, value) VALUES (%s, %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [key, value],
    )


class PostgresMeta:
    """`qmd.store.meta.Meta` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> str | None:
        return read(self._connection, key)


class PostgresMetaWriter(PostgresMeta):
    """`qmd.store.meta.MetaWriter` in PostgreSQL."""

    def put(self, key: str, value: str) -> None:
        put(self._connection, key, value)
