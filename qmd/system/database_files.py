"""
The files of a database on this machine: the database itself, and those that programs keep for it.

Such files, as the record of the server and locks, lie beside a database file. Those of a database
on another machine lie in the user's directory of state, under a name made from its URL.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.system.user_dirs import user_dir

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation


def is_missing(database: DatabaseLocation) -> bool:
    """Whether there is no such file. Of a server only opening it tells."""
    return isinstance(database, Path) and not database.exists()


def is_writable(database: DatabaseLocation) -> bool:
    """Whether this user may write the file. Of a server only writing tells."""
    return not isinstance(database, Path) or os.access(database, os.W_OK)


def file_beside(database: DatabaseLocation, suffix: str) -> Path:
    """
    The path of the file ``<database><suffix>``.

    For a database on a server the directory is made, readable for this user alone. The password
    is no part of the name, so that it may change.
    """
    if isinstance(database, Path):
        return database.with_name(database.name + suffix)
    folder = user_dir("state") / "databases"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = libraries.hashlib.sha256(str(database).encode()).hexdigest()[:16]
    return folder / f"{name}{suffix}"


def lock_beside(database: DatabaseLocation, suffix: str) -> Path:
    """As `file_beside`, but the same for all links to a database file."""
    if isinstance(database, Path):
        database = Path(os.path.realpath(database))
    return file_beside(database, suffix)
