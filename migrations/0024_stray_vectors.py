"""
Drop the virtual tables that a process of version 1.0.0 made in a file that was upgraded meanwhile.

It put new vectors there, where no later version looks, and marked their chunks as done. Those whose
vectors stand nowhere else wait again; ``z_embeddings`` still has the exact vectors, so that no text
is embedded twice. Since the tables of the program have other names, it can make no new ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database


def migrate(db: Database) -> None:
    tables = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'vectors_[0-9]*'"
        " AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0%'"
    ).fetchall()
    if not tables:
        return
    for column in ("model_id", "next_model_id"):
        db.execute(
            f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL AND NOT EXISTS"
            f" (SELECT 1 FROM z_vectors WHERE chunk_id = chunks.id AND model_id = chunks.{column})"
        )
    for (table,) in tables:
        _drop(db, table)


def _drop(db: Database, table: str) -> None:
    """DROP TABLE would ask sqlite-vec, which may be missing: forget the name, drop the rest."""
    db.execute("PRAGMA writable_schema = ON")
    try:
        db.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name = ?", [table])
    finally:
        db.execute("PRAGMA writable_schema = RESET")
    for (name,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? || '_*'", [table]
    ).fetchall():
        db.execute(f'DROP TABLE "{name}"')
