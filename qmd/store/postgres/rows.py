"""Small helpers for SQL and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.store.postgres.library import Connection

if TYPE_CHECKING:
    from qmd.store.postgres.library import Row


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


def returned(connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> list[Row]:
    """As `many`, for a statement that returns a row for each row of values, in their order."""
    results: list[Row] = []
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows, returning=True)
            results += cursor.fetchall()
            while cursor.nextset():
                results += cursor.fetchall()
    return results


def path_below(column: str) -> str:
    """SQL for "this path or below it"; bind path, path + "/", path + "0" ("0" follows "/")."""
    return f"({column} = %s OR ({column} > %s AND {column} < %s))"
