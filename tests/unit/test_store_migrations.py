"""Migrations: all or nothing, once, and the same schema however it was reached."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import MigrationRequiredError, SchemaTooNewError, StoreError
from qmd.store import open_store
from qmd.store.migrations import available, migrations_folder
from qmd.store.sqlite import library as sqlite
from qmd.store.sqlite import migrate
from qmd.values import Progress

pytestmark = pytest.mark.migrates

FIRST = """-- a comment; with a semicolon
CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT);
CREATE TRIGGER t AFTER INSERT ON a BEGIN
    UPDATE a SET name = 'x;y' WHERE id = new.id;
END;
INSERT INTO a (name) VALUES ('first')
"""
SECOND = (
    "def migrate(db):\n    db['a'].add_column('size', int)\n    db.execute('UPDATE a SET size=7')\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_first.sql").write_text(FIRST)
    (folder / "notes.sql").write_text("not numbered, not run")
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kb.sqlite"


def apply(path: Path, folder: Path) -> None:
    connection = sqlite.connect(path, read_only=False)
    try:
        migrate.migrate(connection, path, folder)
    finally:
        connection.close()


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite.connect(path, read_only=True)
    try:
        return list(map(tuple, connection.execute(query)))
    finally:
        connection.close()


SCHEMA = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
#: FTS5 quotes the names of its own tables in its own way; a migration renames them.
SHIPPED_SCHEMA = (
    "SELECT type, name, tbl_name, iif(name LIKE 'z_documents_fts@_%' ESCAPE '@', NULL, sql)"
    " FROM sqlite_master ORDER BY type, name"
)


def test_an_upgraded_database_equals_a_fresh_one(path: Path, folder: Path) -> None:
    apply(path, folder)
    assert rows(path, "SELECT name FROM a") == [("x;y",)]
    (folder / "0002_second.py").write_text(SECOND)
    apply(path, folder)
    fresh = path.with_name("fresh.sqlite")
    apply(fresh, folder)
    assert rows(path, SCHEMA) == rows(fresh, SCHEMA)
    assert rows(path, "SELECT * FROM a") == rows(fresh, "SELECT * FROM a") == [(1, "x;y", 7)]


def test_a_new_database_is_as_the_migrations_would_make_it(path: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    ignored = shutil.ignore_patterns(migrate.WHOLE)
    shutil.copytree(migrations_folder(), steps, ignore=ignored)
    apply(path, steps)
    fresh = path.with_name("fresh.sqlite")
    apply(fresh, migrations_folder())
    assert rows(path, SHIPPED_SCHEMA) == rows(fresh, SHIPPED_SCHEMA)
    tables = rows(
        path,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT IN ('sqlite_schema', '_sqlite_migrations')",
    )
    assert len(tables) > 30
    for table in (*(name for (name,) in tables), "z_documents_fts_config"):
        assert rows(path, f'SELECT * FROM "{table}"') == rows(fresh, f'SELECT * FROM "{table}"')
    done = "SELECT id, migration_set, name FROM _sqlite_migrations ORDER BY id"
    assert rows(path, done) == rows(fresh, done)


def test_a_migration_that_is_newer_than_the_script_of_new_databases_is_run(
    path: Path, folder: Path
) -> None:
    apply(path, folder)
    (record,) = rows(path, "SELECT sql FROM sqlite_master WHERE name = '_sqlite_migrations'")
    script = f"{record[0]};\n{FIRST};\nINSERT INTO _sqlite_migrations (migration_set, name)"
    (folder / migrate.WHOLE).write_text(f"{script} VALUES ('qmd', '0001_first');\n")
    (folder / "0002_second.py").write_text(SECOND)
    fresh = path.with_name("fresh.sqlite")
    apply(fresh, folder)
    assert rows(fresh, "SELECT * FROM a") == [(1, "x;y", 7)]
    names = rows(fresh, "SELECT name FROM _sqlite_migrations ORDER BY id")
    assert names == [("0001_first",), ("0002_second",)]


def test_a_script_of_new_databases_that_fails_leaves_no_trace(path: Path, folder: Path) -> None:
    (folder / migrate.WHOLE).write_text("CREATE TABLE a (x);\nINSERT INTO nowhere VALUES (1);\n")
    with pytest.raises(sqlite.OperationalError, match="nowhere"):
        apply(path, folder)
    assert rows(path, SCHEMA) == []


def test_a_failing_migration_leaves_no_trace_and_those_before_it_neither(
    path: Path, folder: Path
) -> None:
    apply(path, folder)
    (folder / "0002_second.py").write_text(SECOND)
    (folder / "0003_third.sql").write_text("CREATE TABLE c (x);\nINSERT INTO nowhere VALUES (1);\n")
    before = rows(path, SCHEMA)
    with pytest.raises(sqlite.OperationalError, match="nowhere"):
        apply(path, folder)
    assert rows(path, SCHEMA) == before
    assert rows(path, "SELECT name FROM _sqlite_migrations") == [("0001_first",)]
    (folder / "0003_third.sql").write_text("CREATE TABLE c (x);\n")
    apply(path, folder)
    assert rows(path, "SELECT size FROM a") == [(7,)]


def test_a_current_database_is_not_written(path: Path, folder: Path) -> None:
    apply(path, folder)
    reader = sqlite.connect(path, read_only=True)
    statements: list[str] = []
    reader.set_trace_callback(statements.append)
    migrate.migrate(reader, path, folder)
    reader.close()
    assert statements
    assert all(statement.startswith("SELECT") for statement in statements)


def test_an_older_database_is_refused_read_only_and_upgraded_otherwise(path: Path) -> None:
    connection = sqlite.connect(path, read_only=False)
    connection.close()
    with pytest.raises(MigrationRequiredError) as caught:
        open_store(path, read_only=True)
    assert "qmd index" in (caught.value.hint or "")
    open_store(path).close()
    open_store(path, read_only=True).close()


def test_each_migration_of_an_older_database_is_told(path: Path, tmp_path: Path) -> None:
    shipped = available(migrations_folder())
    (tmp_path / "old").mkdir()
    for name in shipped[:10]:
        (file,) = migrations_folder().glob(f"{name}.*")
        shutil.copy(file, tmp_path / "old")
    apply(path, tmp_path / "old")
    ticks: list[Progress] = []
    KnowledgeBase.open(path, progress=ticks.append).close()
    later = shipped[10:]
    assert ticks == [Progress("migrate", n, len(later), name) for n, name in enumerate(later)]
    for database in (path, tmp_path / "new.sqlite"):  # a new one has nothing that takes long
        KnowledgeBase.open(database, create=True, progress=ticks.append).close()
    assert len(ticks) == len(later)


def test_a_database_with_an_unknown_migration_is_too_new(path: Path, folder: Path) -> None:
    (folder / "0002_second.py").write_text(SECOND)
    apply(path, folder)
    (folder / "0002_second.py").unlink()
    with pytest.raises(SchemaTooNewError, match="0002_second"):
        apply(path, folder)


def test_the_loser_of_a_race_to_migrate_finds_it_done(path: Path, folder: Path) -> None:
    """It checked before the winner began, and gets the lock after the winner has committed."""
    loser = sqlite.connect(path, read_only=False)
    raced = False

    def race(statement: str) -> None:
        nonlocal raced
        if statement == "BEGIN IMMEDIATE" and not raced:
            raced = True
            apply(path, folder)

    loser.set_trace_callback(race)
    migrate.migrate(loser, path, folder)
    loser.close()
    assert raced
    assert rows(path, "SELECT count(*) FROM a") == [(1,)]
    assert rows(path, "SELECT count(*) FROM _sqlite_migrations") == [(1,)]


def test_statements_are_split_where_sqlite_says_they_end() -> None:
    statements = list(migrate.split_statements(FIRST))
    assert [statement.split()[-3:] for statement in statements][1] == ["=", "new.id;", "END;"]
    assert len(statements) == 3


def test_every_shipped_migration_is_known_in_order() -> None:
    names = available(migrations_folder())
    assert names[0] == "0001_schema"
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_an_older_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite.dbapi, "sqlite_version_info", (3, 38, 5))
    monkeypatch.setattr(sqlite.dbapi, "sqlite_version", "3.38.5")
    with pytest.raises(StoreError, match=r"SQLite 3\.38\.5 is too old") as raised:
        open_store(tmp_path / "new.sqlite", create=True)
    assert "pysqlite3" in (raised.value.hint or "")
    assert not (tmp_path / "new.sqlite").exists()
