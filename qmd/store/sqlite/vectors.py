"""
What SQLite does for vectors: sqlite-vec's functions scan the int8 copies in ``z_vectors``.

No table of the file needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qmd import libraries, system
from qmd.errors import VectorsUnavailableError
from qmd.store.sql.vectors import RoundedForm, pack_vectors
from qmd.store.sqlite.library import Connection, OperationalError, extensions_loadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sql import Sql
    from qmd.store.sql.models import StoredModel
    from qmd.system.installation import Installation

#: int8 copies are clip(round(256 x), ±63): sqlite-vec's NEON build overflows beyond.
SCALE, CLIP = 256, 63
ROUNDED = RoundedForm(
    "SELECT v.chunk_id, k.document_id, v.collection_id, v.embedding FROM z_vectors v"
    " CROSS JOIN chunks k ON k.id = v.chunk_id"
    " WHERE v.chunk_id > ? AND v.model_id = ? AND k.model_id IS NOT NULL"
    " AND length(v.embedding) = ? ORDER BY v.chunk_id LIMIT ?",
    "int8",
    SCALE,
)


def library(connection: Connection) -> str:
    """The name and version of the library. Raises as `load`."""
    return f"sqlite-vec {load(connection)}"


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


def nearest_ids(
    sql: Sql,
    model: StoredModel,
    query: NDArray[np.float32],
    k: int,
    condition: str,
    values: Sequence[object],
) -> Iterator[tuple[str, list[object]]]:
    """As `qmd.store.sql.vectors.Vectors.nearest`: a SELECT of chunk ids, and its values."""
    load(sql.connection)
    # A vector of another length, in a damaged file, would be an error of the whole scan. The sum of
    # absolute differences takes half of the time of a Euclidean distance.
    yield (
        "SELECT v.chunk_id FROM z_vectors v"
        f" WHERE v.model_id = ? AND length(v.embedding) = ?{condition}"
        " ORDER BY vec_distance_L1(vec_int8(v.embedding), vec_int8(?)), v.chunk_id LIMIT ?",
        [model.id, model.dimension, *values, copied(pack_vectors(query[None])[0]), k],
    )


def prepare(connection: Connection) -> None:
    """Raises VectorsUnavailableError: Vectors that cannot be searched are not worth making."""
    load(connection)


def has_copies(connection: Connection, dimension: int = 0) -> bool:
    """Always."""
    return True


def copied(vector: bytes) -> bytes:
    """float16[dimension] → int8[dimension], which is scanned."""
    exact = libraries.np.frombuffer(vector, dtype=libraries.np.float16).astype(libraries.np.float32)
    return (
        libraries.np.clip(libraries.np.rint(exact * SCALE), -CLIP, CLIP)
        .astype(libraries.np.int8)
        .tobytes()
    )


def _installation() -> Installation:
    return system.installation.current()
