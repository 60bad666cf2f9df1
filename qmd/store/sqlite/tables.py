"""
Gives tables as sqlite-utils objects, for work whose speed does not matter.

Its import takes 100 ms of CPU, so that indexing and searching, which must not pay for it, write
their own SQL. What it writes stands in the transaction that is open.
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
