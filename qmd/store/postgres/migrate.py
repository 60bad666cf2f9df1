"""
Runs the numbered migrations of PostgreSQL: ``postgres/NNNN_name.sql``.

All that are pending run in one transaction, under a lock: of several processes that open a new
database at once, one migrates and the others wait. The table ``qmd_migrations`` records them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

from psycopg import errors

from qmd.errors import CorruptDatabaseError, MigrationRequiredError, StoreError
from qmd.store.migrations import available, is_current, migrations_folder
from qmd.store.postgres import scope
from qmd.store.postgres.library import DAMAGED, Connection, lock_in_transaction, missing_database
from qmd.values.location import ServerDatabase

if TYPE_CHECKING:
    from typing import LiteralString  # type: ignore[attr-defined,unused-ignore]

_RECORD = """
    CREATE TABLE qmd_migrations (
        id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name       text NOT NULL UNIQUE,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


def _stated_schema(connection: Connection) -> str | None:
    """The schema that the URL or the settings of the user name first, None without any."""
    row = connection.execute("SELECT split_part(current_setting('search_path'), ',', 1)").fetchone()
    name = str(row[0]).strip() if row else ""
    name = name[1:-1] if name.startswith('"') else name.lower()
    return None if name in ("", "$user") else name


def _require_schema(connection: Connection, location: ServerDatabase) -> None:
    """Raises StoreError: PostgreSQL would take the next schema of the path without a word."""
    stated = _stated_schema(connection)
    row = connection.execute("SELECT current_schema()").fetchone()
    if stated is not None and row is not None and row[0] != stated:
        raise StoreError(
            f"There is no schema {stated} in {location}, or its user may not use it.",
            hint=f'Make it (CREATE SCHEMA "{stated}"), or leave search_path out of the URL.',
        )


def applied(connection: Connection) -> list[str]:
    """The names of the migrations that this database, or a schema of its own, has had."""
    # Not to_regclass: it may remember that there was no table before another process made it.
    table = connection.execute(
        "SELECT 1 FROM pg_class WHERE relname = 'qmd_migrations' AND pg_table_is_visible(oid)"
        " AND (%s::text IS NULL OR relnamespace = current_schema()::regnamespace)",
        [_stated_schema(connection)],
    ).fetchone()
    if table is None:
        return []
    rows = connection.execute("SELECT name FROM qmd_migrations ORDER BY id")
    return [name for (name,) in rows]


def check(connection: Connection, location: ServerDatabase) -> bool:
    """
    Whether the schema is current; only reads.

    Raises:
        SchemaTooNewError: A newer qmd has written this database.
        CorruptDatabaseError: No program has applied just these migrations.
        StoreError: The URL names a schema that is not there.
    """
    _require_schema(connection, location)

    def damaged() -> CorruptDatabaseError:
        return CorruptDatabaseError(f"The database {location} is damaged.", hint=DAMAGED)

    names = available(migrations_folder("postgres"))
    return is_current(applied(connection), names, location, damaged)


def require_current(connection: Connection, location: ServerDatabase) -> None:
    """
    Raises:
        DatabaseMissingError: There is no knowledge base in the database.
        MigrationRequiredError: Its schema is older. Errors of `check`, too.
    """
    if not check(connection, location):
        if not applied(connection):
            raise missing_database(location)
        raise MigrationRequiredError(
            f"The database {location} is of an older version.",
            hint="Run 'qmd index' once, as a user who may write, to bring it up to date.",
        )


def migrate(connection: Connection, location: ServerDatabase) -> None:
    """Apply what is pending, or nothing. The connection must be in autocommit mode."""
    if check(connection, location):
        return
    with connection.transaction():
        lock_in_transaction(connection, "migrate")
        lock_in_transaction(connection, "write")  # a program that has not noticed writes no more
        check(connection, location)  # again: another process may have been first
        done = applied(connection)
        scope.remove(connection)
        if not done:
            _require_utf8(connection, location)
            try:
                connection.execute(_RECORD)
            except errors.InsufficientPrivilege as error:
                raise _forbidden(location) from error
        folder = migrations_folder("postgres")
        for name in available(folder)[len(done) :]:
            script = (folder / f"{name}.sql").read_text(encoding="utf-8")
            try:
                # Our own file; without values psycopg sends all its statements at once.
                connection.execute(cast("LiteralString", script))
            except (errors.DuplicateObject, errors.DuplicateTable) as error:
                raise _occupied(location, error) from error
            except errors.InsufficientPrivilege as error:
                raise _forbidden(location) from error
            except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
                raise StoreError(
                    f"The server of {location} lacks an extension:"
                    f" {error.diag.message_primary or error}",
                    hint="qmd needs pgvector: https://github.com/pgvector/pgvector#installation",
                ) from error
            connection.execute("INSERT INTO qmd_migrations (name) VALUES (%s)", [name])
        # Otherwise an administrator may make them later.
        with suppress(errors.InsufficientPrivilege), connection.transaction():
            scope.prepare(connection)


def _require_utf8(connection: Connection, location: ServerDatabase) -> None:
    """Raises StoreError: in another encoding most notes could not be stored."""
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is not None and row[0] != "UTF8":
        raise StoreError(
            f"The database {location} has the encoding {row[0]}; qmd needs UTF8.",
            hint="Make another: createdb -E UTF8 -T template0 NAME. This one was left untouched.",
        )


def _occupied(location: ServerDatabase, error: errors.Error) -> StoreError:
    return StoreError(
        f"The database {location} has tables of another program: {error.diag.message_primary}",
        hint="Give an empty database, or a schema of its own: add"
        " ?options=-csearch_path%3DSCHEMA to the URL. This one was left untouched.",
    )


def _forbidden(location: ServerDatabase) -> StoreError:
    return StoreError(
        f"The user of {location} may not make tables there.",
        hint="Let the user own the database (ALTER DATABASE … OWNER TO …), or grant CREATE on the"
        " schema; CREATE EXTENSION vector may need an administrator.",
    )
