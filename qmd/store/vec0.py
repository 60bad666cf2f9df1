"""
sqlite-vec: the extension, and the rows of its tables.

``vectors_<model>`` is a vec0 table of int8 copies for the nearest-neighbour scan, one row a
chunk. No trigger reaches it, since any SQLite is to open the file: whoever deletes chunks calls
`delete` or `delete_where` before.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmd.errors import VectorsUnavailableError
from qmd.sqlite import Connection, OperationalError, extensions_loadable
from qmd.store import meta

#: In ``meta``: how often vectors were made anew, and how often the index was changed since.
STATE = "vectors"


# --- the extension -------------------------------------------------------------------


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
            hint="pip install pysqlite3 (or sqlean.py), then run the command again.",
        )
    try:
        import sqlite_vec
    except ImportError as error:
        raise VectorsUnavailableError(
            "sqlite-vec is not installed, so there is no vector search.",
            hint="pip install sqlite-vec (it has no build for every platform).",
        ) from error
    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    except OperationalError as error:
        raise VectorsUnavailableError(
            f"sqlite-vec cannot be loaded: {error}", hint="pip install --force-reinstall sqlite-vec"
        ) from error
    finally:
        connection.enable_load_extension(False)
    # A nearest-neighbour scan reads the whole index: copying the pages took half of its time.
    connection.execute(f"PRAGMA mmap_size = {1 << 30}")
    return str(connection.execute("SELECT vec_version()").fetchone()[0])


def load_if_used(connection: Connection) -> None:
    """
    Load sqlite-vec where the database has a vector index, so that deletions reach it.

    Where it cannot be loaded, deleted chunks leave rows behind there. They are never found
    (hits join the chunks), and `purge` removes them on the next `embed`.
    """
    if tables(connection):
        try:
            load(connection)
        except VectorsUnavailableError:
            return


def is_loaded(connection: Connection) -> bool:
    """Whether this connection has sqlite-vec."""
    row = connection.execute(
        "SELECT 1 FROM pragma_function_list WHERE name = 'vec_version'"
    ).fetchone()
    return row is not None


def tables(connection: Connection) -> list[str]:
    """The names of the vec0 tables; there are two while the model is being changed."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master"
        " WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0%'"
    )
    return [name for (name,) in rows]


# --- the rows ------------------------------------------------------------------------


def delete(connection: Connection, ids: Sequence[int]) -> None:
    """Take chunks out of the index; the cache keeps their vectors."""
    names = tables(connection) if ids else []
    if not names:
        return
    if is_loaded(connection):
        for table in names:
            connection.executemany(
                f'DELETE FROM "{table}" WHERE chunk_id = ?', [(number,) for number in ids]
            )
    changed(connection)


def delete_where(connection: Connection, condition: str, values: Sequence[object]) -> None:
    """Take the chunks that satisfy an SQL condition on ``chunks`` out of the index."""
    if tables(connection):
        rows = connection.execute(
            "SELECT id FROM chunks"
            f" WHERE (model_id IS NOT NULL OR next_model_id IS NOT NULL) AND ({condition})",
            values,
        ).fetchall()
        delete(connection, [number for (number,) in rows])


_ORPHANS = "chunk_id NOT IN (SELECT id FROM chunks)"


def count_orphans(connection: Connection, table: str) -> int:
    """Index rows whose chunk is gone (deleted where sqlite-vec was missing)."""
    row = connection.execute(f'SELECT count(*) FROM "{table}" WHERE {_ORPHANS}').fetchone()
    return int(row[0])


def purge(connection: Connection, table: str) -> int:
    """Remove them; returns how many there were."""
    rows = connection.execute(f'SELECT chunk_id FROM "{table}" WHERE {_ORPHANS}').fetchall()
    delete(connection, [number for (number,) in rows])
    return len(rows)


# --- what changed --------------------------------------------------------------------


def state(connection: Connection) -> tuple[int, int]:
    """Two counters: the first tells that known vectors may differ, the second that some came
    or went. Chunks that were deleted by hand do not count."""
    epoch, _, count = (meta.read(connection, STATE) or "0:0").partition(":")
    return int(epoch), int(count)


def changed(connection: Connection, *, remade: bool = False) -> None:
    """To be called in the transaction of every change, so that copies in memory follow."""
    epoch, count = state(connection)
    meta.put(connection, STATE, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")
