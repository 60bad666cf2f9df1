"""Loads the vector functions of sqlite-vec into a connection. No table of the file needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.errors import VectorsUnavailableError
from qmd.store.sqlite.library import Connection, OperationalError, extensions_loadable

if TYPE_CHECKING:
    from qmd.system.installation import Installation


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


def _installation() -> Installation:
    from qmd.system import installation  # only for hints: it takes a millisecond to import

    return installation.current()
