"""
Restricts a transaction to some collections: in it, all other rows do not exist.

A schema beside that of the tables has a view of each table, by the same name, with the rows that
belong to the collections which settings of the transaction name. A restricted transaction has this
schema as its whole `search_path`, so that every statement of every capability reads the views: the
tables themselves have no name in it. `qmd.store.scoped` says which rows those are; a table
that has no view does not exist.

Temporary views, as in a database file, would not do: a replica cannot create any. All settings are
local to the transaction, whose end resets them. Without them a view raises an error.

The views are no security barriers (`security_barrier`), which would keep the server from joining by
indexes: clients send no SQL, and no expression of ours raises an error for a row that is hidden.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from qmd.errors import StoreError
from qmd.store.postgres.library import Connection, lock_in_transaction, one
from qmd.store.scoped import ScopeWords, visible_rows

if TYPE_CHECKING:
    from qmd.values.access import AccessScope
    from qmd.values.location import ServerDatabase

_IDS = "(current_setting('qmd.collection_ids')::bigint[])"
#: Stands for the schema of the tables.
_MAIN = "{main}"
_OF_DOCUMENT = (
    f"{{0}} IN (SELECT d.id FROM {{{_MAIN}}}.documents d WHERE d.collection_id = ANY({_IDS}))"
)
_ROWS = visible_rows(
    ScopeWords(
        main=_MAIN,
        is_open=f"{{0}}.id = ANY({_IDS})",
        of_collection=f"{{0}}.collection_id = ANY({_IDS})",
        of_document=_OF_DOCUMENT,
        owner="current_setting('qmd.owner')",
    )
) | {"qmd_migrations": "true"}
#: Table → a query of figures of the scope in place of those of the whole table.
_FIGURES = {
    "z_full_text_totals": (
        "SELECT true AS only_row, count(*) AS documents,"
        " coalesce(sum(t.length), 0)::bigint AS length"
        f" FROM {_MAIN}.z_document_tokens t WHERE {_OF_DOCUMENT.format('t.document_id')}"
    ),
}
#: Functions that statements call: arguments, result and body.
_FUNCTIONS = (
    f"qmd_moment(written text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE"
    f" RETURN {_MAIN}.qmd_moment(written)",
)
#: Another version of the program has views of its own, so both can serve clients at once.
_DEFINITIONS = hashlib.md5(  # noqa: S324 - it tells versions apart, and protects nothing
    repr((_ROWS, _FIGURES, _FUNCTIONS)).encode()
).hexdigest()[:8]
_PREFIX = "qmd_scoped_"
#: SQL for the name of the schema of the views: 52 of the 63 bytes that a name may have.
_SCHEMA = f"'{_PREFIX}{_DEFINITIONS}_' || md5(current_schema())"


def restrict(connection: Connection, scope: AccessScope) -> bool:
    """
    Restrict the transaction that has just begun, to its end.

    Returns:
        Whether the views exist; without them, no statement of the transaction finds its tables.
    """
    row = one(
        connection,
        "SELECT to_regnamespace(s.name) IS NOT NULL,"
        " set_config('qmd.owner', %s, true),"
        " set_config('qmd.collection_ids', (SELECT coalesce(array_agg(id), '{}')::text"
        "  FROM collections WHERE name = ANY(%s)), true),"
        f" set_config('search_path', s.name, true) FROM (SELECT {_SCHEMA} AS name) s",
        [scope.owner, sorted(scope.read)],
    )
    return bool(row[0])


def prepare(connection: Connection) -> None:
    """
    Make the views of all tables, unless they exist, in a transaction that can write.

    Raises:
        psycopg.errors.InsufficientPrivilege: The user may not create a schema.
    """
    lock_in_transaction(connection, "scope")
    main, schema = one(connection, f"SELECT quote_ident(current_schema()), {_SCHEMA}")
    if one(connection, "SELECT to_regnamespace(%s) IS NOT NULL", [schema])[0]:
        return
    connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(
        f"COMMENT ON SCHEMA {schema} IS 'What clients with a token read: views of the tables with"
        " the rows of the collections that a transaction may see. qmd makes them again if you drop"
        " this schema.'"
    )
    for function in _FUNCTIONS:
        connection.execute(f"CREATE FUNCTION {schema}.{function.replace(_MAIN, main)}")
    names = connection.execute(
        "SELECT relname, quote_ident(relname) FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
    ).fetchall()
    for name, quoted in names:
        rows = f"SELECT t.* FROM {_MAIN}.{quoted} t WHERE {_ROWS.get(name, 'false')}"
        query = _FIGURES.get(name, rows).replace(_MAIN, main)
        connection.execute(f"CREATE VIEW {schema}.{quoted} AS {query}")


def remove(connection: Connection) -> bool:
    """
    Remove the views of all versions of the program: tables cannot be changed below them.

    Returns:
        Whether there were any.
    """
    schemas = connection.execute(
        "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)"
        " AND nspname LIKE '%%\\_' || md5(current_schema())",
        [_PREFIX],
    ).fetchall()
    for (name,) in schemas:
        connection.execute(f"DROP SCHEMA {name} CASCADE")
    return bool(schemas)


def missing_views(location: ServerDatabase) -> StoreError:
    return StoreError(
        f"The database {location} has no views yet that show a client with a token its part.",
        hint="Run 'qmd server token create' once with the primary server, as a user who may create"
        " a schema there (GRANT CREATE ON DATABASE …).",
    )
