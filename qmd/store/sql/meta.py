"""Small values that processes share through the database, by key."""

from __future__ import annotations

from qmd.store.sql import Sql


class Meta:
    """Reads values by key."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, key: str) -> str | None:
        """The value of a key; None if it was never set."""
        row = self._sql.first("SELECT value FROM z_meta WHERE key = ?", [key])
        return None if row is None else str(row[0])


class MetaWriter(Meta):
    """Sets values."""

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self._sql.run(
            "INSERT INTO z_meta (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )
