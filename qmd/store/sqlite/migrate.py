"""
Runs numbered migrations: ``NNNN_name.sql`` or ``NNNN_name.py`` (a function ``migrate(db)``).

sqlite-utils runs them and records each in ``_sqlite_migrations`` in its own transaction.
All of it happens under ``BEGIN IMMEDIATE``: of several processes that open a new database
at once, one migrates and the others wait.

A new database gets at once what the migrations would make of it: `WHOLE`. They take .2 s of CPU and
25 MB, because sqlite-utils loads numpy if it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import libraries, system
from qmd.errors import MigrationRequiredError, StoreError
from qmd.store.migrations import available, is_current, migrations_folder
from qmd.store.sqlite.disk_space import require_free
from qmd.store.sqlite.library import Connection, OperationalError, damaged, dbapi

if TYPE_CHECKING:
    from sqlite_utils import Database

SET_NAME = "qmd"
#: What all migrations make of a new database; ``docs/generate_schema.py`` writes it.
WHOLE = "new.sql"


def applied(connection: Connection) -> list[str]:
    """The names of the migrations this database has had; only reads."""
    try:
        rows = connection.execute(
            "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY id", [SET_NAME]
        ).fetchall()
    except OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    return [name for (name,) in rows]


def check(connection: Connection, path: Path, folder: Path | None = None) -> bool:
    """
    Whether the schema is current; only reads. ``folder``: None for this program's migrations.

    Raises:
        SchemaTooNewError: A newer qmd has written this file.
        CorruptDatabaseError: No program has applied just these migrations.
        StoreError: It is the database of another program.
    """
    # Asked in this order: another process may migrate between the two questions, and then
    # tables must not be seen without the record of what made them.
    occupied = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
    done = applied(connection)
    names = available(folder or migrations_folder())
    current = is_current(done, names, path, partial(damaged, path))
    if not done and occupied:
        raise StoreError(
            f"The database {path} belongs to another program.",
            hint="Give another file with --db; this one was left untouched.",
        )
    return current


def require_current(connection: Connection, path: Path) -> None:
    """Raises MigrationRequiredError where `check` finds an older schema."""
    if not check(connection, path):
        quoted = libraries.shlex.quote(str(path))
        raise MigrationRequiredError(
            f"The database {path} is of an older version.",
            hint=f"Run 'qmd index --db {quoted}' once to bring it up to date.",
        )


def migrate(
    connection: Connection,
    path: Path,
    folder: Path | None = None,
    *,
    progress: Callable[[int, int, str], object] | None = None,
) -> None:
    """
    Apply what is pending, or nothing. The connection must be in autocommit mode.

    ``progress``: called before each migration of an older database with the number of those that
    are done, of all that are pending, and its name.

    Raises DiskFullError: The disk may have too little room; said before anything is written.
    """
    folder = folder or migrations_folder()
    if check(connection, path, folder):
        return
    done = applied(connection)
    whole = folder / WHOLE
    if not done and whole.exists():
        _make_whole(connection, path, folder, whole.read_text(encoding="utf-8"))
        migrate(connection, path, folder, progress=progress)  # what is newer than the script
        return
    if any(_rewrites(folder, name) for name in available(folder) if name not in done):
        # All that is rewritten is in the log until the end.
        require_free({path.parent: path.stat().st_size}, "Bringing the database up to date")
    migrations = libraries.migrations.Migrations(SET_NAME)
    pending = [name for name in available(folder) if name not in done]
    tell = progress if done and progress is not None else lambda number, total, name: None
    for name in available(folder):
        run = _load(folder, name)
        if name in pending:
            run = _reporting(run, partial(tell, pending.index(name), len(pending), name))
        migrations(name=name)(run)
    with _changing(connection, path, folder):
        migrations.apply(libraries.sqlite_utils.Database(connection, use_counts_table=False))


def _make_whole(connection: Connection, path: Path, folder: Path, script: str) -> None:
    with _changing(connection, path, folder):
        if not applied(connection):
            for statement in split_statements(script):
                connection.execute(statement)


@contextmanager
def _changing(connection: Connection, path: Path, folder: Path) -> Iterator[None]:
    """A transaction in which the schema is changed. Raises as `check`."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        check(connection, path, folder)  # again: another process may have been first
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _reporting(
    run: Callable[[Database], None], report: Callable[[], object]
) -> Callable[[Database], None]:
    def run_reporting(db: Database) -> None:
        report()
        run(db)

    return run_reporting


def _rewrites(folder: Path, name: str) -> bool:
    """Whether a migration may write large parts of the database anew."""
    script = folder / f"{name}.sql"
    if not script.exists():
        return True
    statements = script.read_text(encoding="utf-8").upper()
    return any(word in statements for word in ("'REBUILD'", "UPDATE DOCUMENTS", "CREATE INDEX"))


def _load(folder: Path, name: str) -> Callable[[Database], None]:
    script = folder / f"{name}.sql"
    if script.exists():
        statements = list(split_statements(script.read_text(encoding="utf-8")))

        def run(db: Database) -> None:
            # One by one: executescript() would commit the transaction we are in.
            for statement in statements:
                db.execute(statement)

        return run
    spec = libraries.importlib_util.spec_from_file_location(name, folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise StoreError(
            f"The migration {name} cannot be loaded.",
            hint=system.installation.current().reinstall(),
        )
    module = libraries.importlib_util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[Database], None] = module.migrate
    return function


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script; triggers stay whole."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and dbapi.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if any(line.strip() and not line.startswith("--") for line in statement.splitlines()):
        yield statement.strip()
