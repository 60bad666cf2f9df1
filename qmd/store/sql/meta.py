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


#: Counts changes of the vectors, so that processes notice stale copies.
VECTORS = "vectors"


def vector_version(sql: Sql) -> tuple[int, int]:
    """
    The first number grows when vectors that a process holds may differ, the second when some
    came or went. Chunks that were deleted by hand do not count.
    """
    epoch, _, count = (Meta(sql).get(VECTORS) or "0:0").partition(":")
    return int(epoch), int(count)


def advance_vectors(sql: Sql, *, remade: bool = False) -> None:
    """Call this in the transaction of every change; ``remade``: vectors that exist may differ."""
    epoch, count = vector_version(sql)
    MetaWriter(sql).put(VECTORS, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")
