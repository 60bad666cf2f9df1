"""
Gives tables as sqlite-utils objects, for work whose speed does not matter, and by name.

The import of sqlite-utils takes 100 ms of CPU, so that indexing and searching, which must not pay
for it, write their own SQL. What it writes stands in the transaction that is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from qmd.store.sqlite.library import Connection

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.db import Table


def database(connection: Connection) -> Database:
    from sqlite_utils import Database

    return Database(connection, use_counts_table=False)


def table(connection: Connection, name: str) -> Table:
    return cast("Table", database(connection)[name])


def stored_name(connection: Connection, name: str) -> str:
    """The name that a table has in a file of any version: those before 1.8 have no ``z_``."""
    columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
    return name if columns else name.removeprefix("z_")
