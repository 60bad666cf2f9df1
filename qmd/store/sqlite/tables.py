"""Tables as sqlite-utils sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from qmd.store.sqlite.library import Connection

if TYPE_CHECKING:
    from sqlite_utils.db import Table


def table(connection: Connection, name: str) -> Table:
    from sqlite_utils import Database  # 100 ms of imports that only few writes need

    return cast("Table", Database(connection, use_counts_table=False)[name])
