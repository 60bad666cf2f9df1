"""
Restricts a connection to some collections: to it, all other rows do not exist.

A name in SQL means the temporary view of this name, if there is one, before the table. So each
table gets a temporary view with the rows that belong to the collections, and every statement of
every capability reads that view. `qmd.store.scoped_rows` says which rows those are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.store.scoped_rows import ScopeWords, visible_rows
from qmd.store.sqlite.library import Connection

if TYPE_CHECKING:
    from qmd.values.access import AccessScope

_OPEN = "IN (SELECT name FROM temp.scope_names)"
_COLLECTIONS = f"(SELECT c.id FROM main.collections c WHERE c.name {_OPEN})"
_ROWS = visible_rows(
    ScopeWords(
        main="main",
        is_open=f"{{0}}.name {_OPEN}",
        # The sign keeps SQLite from reading a whole collection where another index leads to a few
        # rows.
        of_collection=f"+{{0}}.collection_id IN {_COLLECTIONS}",
        of_document=(
            "EXISTS (SELECT 1 FROM main.documents d WHERE d.id = {0}"
            f" AND d.collection_id IN {_COLLECTIONS})"
        ),
        owner="(SELECT owner FROM temp.scope_owner)",
    )
)


def restrict(connection: Connection, scope: AccessScope) -> None:
    """Restrict a connection that was opened just now, for as long as it is open."""
    connection.execute("CREATE TEMP TABLE scope_names (name TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.executemany(
        "INSERT INTO temp.scope_names VALUES (?)", [(name,) for name in sorted(scope.read)]
    )
    connection.execute("CREATE TEMP TABLE scope_owner (owner TEXT)")
    connection.execute("INSERT INTO temp.scope_owner VALUES (?)", [scope.owner])
    names = connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    for (name,) in names:
        condition = _ROWS.get(name, "false")
        connection.execute(
            f'CREATE TEMP VIEW "{name}" AS SELECT t.* FROM main."{name}" t WHERE {condition}'
        )
