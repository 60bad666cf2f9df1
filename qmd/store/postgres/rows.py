"""Small helpers for SQL and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.store.postgres.library import Connection
from qmd.store.sql import POSTGRES
from qmd.store.sql.filters import SqlSelection
from qmd.store.sql.filters import require_sql as sql_of

if TYPE_CHECKING:
    from qmd.store.postgres.library import Row
    from qmd.store.selection import Selection


def one(connection: Connection, sql: str, values: Sequence[object] = ()) -> Row:
    """
    The one row of a result that always has one.

    Raises:
        LookupError: It has none.
    """
    row = connection.execute(sql, values).fetchone()
    if row is None:
        raise LookupError("a row that must exist does not")
    return row


def many(connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> None:
    """Execute a statement once for each row of values, in few round trips."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def require_sql(selection: Selection) -> SqlSelection:
    """A selection in the form that psycopg takes. Raises TypeError: Another store made it."""
    where = sql_of(selection)
    return where._replace(sql=POSTGRES.statement(where.sql))
