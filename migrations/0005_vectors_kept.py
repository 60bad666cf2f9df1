"""
The vectors of version 1.0.0 move from sqlite-vec's virtual tables into the table ``vectors``.

They are made again from the exact ones in ``embeddings``, so that sqlite-vec is not needed, and
no text is embedded again. The code stands here whole, because later versions of the program must
not change what this step does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

ROWS_AT_ONCE = 2000


def migrate(db: Database) -> None:
    for model_id, column in db.execute(
        "SELECT id, CASE WHEN active THEN 'model_id' ELSE 'next_model_id' END"
        " FROM models WHERE active OR next"
    ).fetchall():
        _copy(db, model_id, column)
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master"
        " WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0%'"
    ).fetchall():
        _drop(db, table)


def _copy(db: Database, model_id: int, column: str) -> None:
    import numpy as np

    last = 0
    while True:
        rows = db.execute(
            "SELECT k.id, d.collection_id, e.vector FROM chunks k"
            " JOIN documents d ON d.id = k.document_id"
            " JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.{column} = ? AND k.id > ? ORDER BY k.id LIMIT ?",
            [model_id, model_id, last, ROWS_AT_ONCE],
        ).fetchall()
        if not rows:
            break
        last = rows[-1][0]
        exact = np.frombuffer(b"".join(row[2] for row in rows), np.float16).astype(np.float32)
        copies = np.clip(np.rint(exact * 256), -63, 63).astype(np.int8).reshape(len(rows), -1)
        db.conn.executemany(
            "INSERT INTO vectors (chunk_id, model_id, collection_id, embedding)"
            " VALUES (?, ?, ?, ?)",
            [
                (chunk, model_id, collection, copy.tobytes())
                for (chunk, collection, _), copy in zip(rows, copies, strict=True)
            ],
        )
    # A chunk whose exact vector is missing waits for a new one.
    db.execute(
        f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL"
        " AND id NOT IN (SELECT chunk_id FROM vectors WHERE model_id = ?)",
        [model_id],
    )


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
