"""Loads the vector functions of sqlite-vec into a connection. No table of the file needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qmd import libraries, system
from qmd.errors import VectorsUnavailableError
from qmd.store.sqlite.library import Connection, OperationalError, extensions_loadable

if TYPE_CHECKING:
    from qmd.store.sql.models import StoredModel
    from qmd.system.installation import Installation

#: int8 copies are clip(round(256 x), ±63): sqlite-vec's NEON build overflows beyond.
SCALE, CLIP = 256, 63


def load(connection: Connection) -> str:
    """
    Load sqlite-vec into a connection, once; returns its version.

    Raises:
        VectorsUnavailableError: There is no sqlite-vec here, or SQLite cannot load it.
    """
    try:
        return str(connection.execute("SELECT vec_version()").fetchone()[0])
    except OperationalError as error:
        if "no such function" not in str(error):
            raise
    if not extensions_loadable():
        raise VectorsUnavailableError(
            "This Python's SQLite cannot load extensions, so there is no vector search.",
            hint=f"{_installation().install('pysqlite3')} (or sqlean.py), then run the command "
            "again.",
        )
    try:
        import sqlite_vec
    except ImportError as error:
        raise VectorsUnavailableError(
            "sqlite-vec is not installed, so there is no vector search.",
            hint=f"{_installation().install('sqlite-vec')} (it has no build for every platform).",
        ) from error
    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    except OperationalError as error:
        raise VectorsUnavailableError(
            f"sqlite-vec cannot be loaded: {error}",
            hint=_installation().reinstall("sqlite-vec"),
        ) from error
    finally:
        connection.enable_load_extension(False)
    # A scan for the nearest vectors reads the whole table: copying its pages took half the time.
    connection.execute(f"PRAGMA mmap_size = {1 << 30}")
    return str(connection.execute("SELECT vec_version()").fetchone()[0])


def quantize(vector: bytes) -> bytes:
    """float16[dimension] → int8[dimension] as the index holds it."""
    exact = libraries.np.frombuffer(vector, dtype=libraries.np.float16).astype(libraries.np.float32)
    return (
        libraries.np.clip(libraries.np.rint(exact * SCALE), -CLIP, CLIP)
        .astype(libraries.np.int8)
        .tobytes()
    )


def prepare(connection: Connection) -> None:
    """Raises VectorsUnavailableError: Vectors that cannot be searched are not worth making."""
    load(connection)


def put(connection: Connection, model: StoredModel, rows: Iterable[tuple[int, int, bytes]]) -> None:
    """Store copies of vectors that are searched: triples of chunk id, collection id and vector."""
    connection.executemany(
        "INSERT INTO z_vectors (chunk_id, model_id, collection_id, embedding)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (chunk_id, model_id)"
        " DO UPDATE SET embedding = excluded.embedding",
        [(chunk, model.id, collection, quantize(vector)) for chunk, collection, vector in rows],
    )


def renumber(connection: Connection, model_id: int, chunk_id: int, new_id: int) -> None:
    """Give the copy of a chunk's vector to another chunk."""
    connection.execute(
        "UPDATE z_vectors SET chunk_id = ? WHERE chunk_id = ? AND model_id = ?",
        [new_id, chunk_id, model_id],
    )


def remove(
    connection: Connection,
    model: StoredModel,
    condition: str = "true",
    values: Sequence[object] = (),
) -> None:
    """Remove the copies of a model's vectors, or some of them."""
    connection.execute(
        f"DELETE FROM z_vectors WHERE model_id = ? AND {condition}", [model.id, *values]
    )


def _installation() -> Installation:
    return system.installation.current()
