"""
Removes vectors that a process of version 1.0.0 wrote after the file had been upgraded.

One that was running before the upgrade makes its virtual table again, puts new vectors there,
where this version does not look, and marks their chunks as done.
"""

from __future__ import annotations

from qmd.store.sqlite.library import Connection

_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'vectors_[0-9]*'"
    " AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0%'"
)


def exist(connection: Connection) -> bool:
    """Whether there is such a table; only reads, and asks only for the names of the tables."""
    return connection.execute(_TABLES).fetchone() is not None


def remove(connection: Connection) -> None:
    """
    Drop such tables; chunks whose vectors stand nowhere else wait for vectors again.

    ``z_embeddings`` still has the exact vectors, so that no text is embedded twice.
    """
    tables = connection.execute(_TABLES).fetchall()
    if not tables:
        return
    for column in ("model_id", "next_model_id"):
        connection.execute(
            f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL AND NOT EXISTS"
            f" (SELECT 1 FROM z_vectors WHERE chunk_id = chunks.id AND model_id = chunks.{column})"
        )
    for (table,) in tables:
        _drop(connection, table)


def _drop(connection: Connection, table: str) -> None:
    """DROP TABLE would ask sqlite-vec, which may be missing: forget the name, drop the rest."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name = ?", [table])
    finally:
        connection.execute("PRAGMA writable_schema = RESET")
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? || '_*'", [table]
    ).fetchall():
        connection.execute(f'DROP TABLE "{name}"')
