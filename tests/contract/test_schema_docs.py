"""docs/schema.md says what the live database is, and its examples run in the stock shell."""

from __future__ import annotations

import re
import runpy
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import psycopg
import pytest
from support.cli import filled

from qmd.store import open_store
from qmd.store.migrations import migrations_folder
from qmd.store.scoped import ScopeWords, visible_rows
from qmd.values.location import ServerDatabase

ROOT = Path(__file__).parents[2]
GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate_schema.py"))
for_postgres: Callable[[str], str] = GENERATOR["for_postgres"]
WHOLE: str = GENERATOR["WHOLE"].read_text(encoding="utf-8")
DOCUMENT: str = GENERATOR["DOCUMENT"].read_text(encoding="utf-8")


@pytest.fixture
def new_database(tmp_path: Path) -> Iterator[Connection]:
    """As another program opens it."""
    open_store(tmp_path / "index.sqlite", create=True).close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        yield connection


def test_the_schema_document_is_fresh() -> None:
    assert GENERATOR["document"]() == DOCUMENT, (
        "run: .venv-tests/bin/python docs/generate_schema.py"
    )


@pytest.mark.migrates
def test_the_script_of_new_databases_is_fresh() -> None:
    made = GENERATOR["whole"](migrations_folder())
    assert made == WHOLE, "run: .venv-tests/bin/python docs/generate_schema.py"


def test_a_migration_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "0001_first.sql").write_text("-- First.\nCREATE TABLE a (x);\n")
    (tmp_path / "0002_bad.sql").write_text("-- Bad.\nALTER TABLE nowhere ADD COLUMN y;\n")
    with pytest.raises(SystemExit, match=r"0002_bad\.sql: no such table: nowhere"):
        GENERATOR["whole"](tmp_path)


def test_the_example_of_a_new_column_is_a_migration(new_database: Connection) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^ +(ALTER TABLE .*;)$", page, re.MULTILINE)
    new_database.execute(example)
    assert "COMMENT ON COLUMN" in for_postgres(f"-- A reason.\n{example}\n")


@pytest.mark.parametrize(
    ("name", "by_hand"), [("0029_pictures", "0013_pictures"), ("0030_tasks", "0014_tasks")]
)
def test_a_table_is_declared_once(name: str, by_hand: str) -> None:
    """What is generated for PostgreSQL is what people wrote, but for types that hold less."""
    migrations = ROOT / "migrations"
    source = (migrations / f"{name}.sql").read_text(encoding="utf-8")
    expected = (migrations / f"postgres/{by_hand}.sql").read_text(encoding="utf-8")
    expected = re.sub(r"(?m)^(    \w+ +)integer", r"\1bigint", expected)
    expected = re.sub(r"(?m)^(    \w+ +)text,", r'\1text COLLATE "C",', expected)
    generated = re.sub(r"-- SQLite has here: CREATE VIEW v_\w+ AS\n", "", for_postgres(source))
    assert generated.split() == expected.split()


def test_a_generated_migration_makes_its_tables(postgres_database: ServerDatabase) -> None:
    migration = (
        "-- Things.\nCREATE TABLE things (\n    -- It's a thing. v_things has the files.\n"
        "    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,\n"
        "    size REAL,\n    bytes BLOB NOT NULL,\n    PRIMARY KEY (document_id, bytes)\n"
        ") WITHOUT ROWID;\nCREATE INDEX things_by_size ON things (size);\n"
        "ALTER TABLE things ADD COLUMN name TEXT;\n"
        "ALTER TABLE things ADD COLUMN since /* Whose day it's. */ TEXT NOT NULL DEFAULT '';\n"
    )
    with psycopg.connect(postgres_database.url) as connection:
        connection.execute(for_postgres(migration).encode())
        assert connection.execute(
            "SELECT column_name, data_type, collation_name FROM information_schema.columns"
            " WHERE table_name = 'things' ORDER BY ordinal_position"
        ).fetchall() == [
            ("document_id", "bigint", None),
            ("size", "double precision", None),
            ("bytes", "bytea", None),
            ("name", "text", "C"),
            ("since", "text", "C"),
        ]
        assert connection.execute("SELECT obj_description('things'::regclass)").fetchone() == (
            "It's a thing.",
        )
        assert connection.execute("SELECT col_description('things'::regclass, 5)").fetchone() == (
            "Whose day it's.",
        )


#: What one engine alone has: tables and views, and columns of those that both have.
OF_SQLITE = """
    _sqlite_migrations about v_contexts v_history v_hits v_observations v_tasks z_changed_documents
    z_common_word_builds z_common_words z_documents_fts_text z_link_targets z_links z_properties
    z_property_keys z_searchable z_vectors
    documents.tags properties.beginning v_documents.description v_documents.text
"""
OF_POSTGRES = """
    qmd_migrations z_document_changes z_document_tokens z_full_text_totals z_postings
    aliases.alias_key documents.moment tags.tag_key z_pending_writes.machine
"""


def test_both_engines_have_the_same_tables_and_columns(
    postgres_database: ServerDatabase, new_database: Connection
) -> None:
    """A migration that was written for one engine alone is noticed here, or named above."""
    in_sqlite = new_database.execute(
        "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_xinfo(t.name) c"
        " WHERE t.schema = 'main' AND t.type IN ('table', 'view')"
        " AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@'"
    ).fetchall()
    with psycopg.connect(postgres_database.url) as connection:
        in_postgres = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
        ).fetchall()
    advice = (
        "a migration makes tables and columns for both engines: run"
        " .venv-tests/bin/python docs/generate_schema.py --postgres NNNN_name"
    )
    assert alone(in_sqlite, in_postgres) == set(OF_SQLITE.split()), advice
    assert alone(in_postgres, in_sqlite) == set(OF_POSTGRES.split()), advice


def alone(these: list[tuple[str, str]], others: list[tuple[str, str]]) -> set[str]:
    """The tables of these that the others do not have, and columns of tables that both have."""
    tables = {table for table, _ in others}
    missing = set(these) - set(others)
    return {f"{table}.{column}" if table in tables else table for table, column in missing}


#: Tables of which a client with a scope sees no row, because somebody has looked at them. All
#: others stand in `qmd.store.scoped`.
CLOSED_TO_SCOPES = """
    _sqlite_migrations about audit z_access_scopes z_access_tokens z_model_cache z_pending_writes
    z_changed_documents z_common_word_builds z_common_words z_documents_fts
    z_link_targets z_links z_properties z_property_keys
"""


def test_each_table_says_what_clients_with_a_scope_see(new_database: Connection) -> None:
    """`z_links` and `z_properties` are read through views, which have the rows of a scope."""
    tables = new_database.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
        " AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"
    )
    closed = {name for (name,) in tables} - visible_rows(ScopeWords("", "", "", "", "")).keys()
    assert closed == set(CLOSED_TO_SCOPES.split()), (
        "say in qmd/store/scoped.py which rows of a new table belong to a collection;"
        " a table that no client with a scope may see stands in CLOSED_TO_SCOPES"
    )


def test_what_belongs_to_a_document_is_deleted_with_it(new_database: Connection) -> None:
    """Other programs delete documents without foreign keys; a table of one may need a trigger."""
    tables = new_database.execute(
        "SELECT t.name FROM pragma_table_list t, pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND c.name = 'document_id'"
    )
    triggers = new_database.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'documents'"
    )
    deleted = {table for (sql,) in triggers for table in re.findall(r"DELETE FROM (\w+)", sql)}
    kept = {name for (name,) in tables} - deleted
    assert kept == {"z_changed_documents"}, (
        "a table with document_id needs a trigger documents_delete_NAME, as migration 0030 has one"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER a AFTER INSERT ON documents BEGIN SELECT 1; END;",
        "CREATE TABLE a (id INTEGER PRIMARY KEY);",
        "UPDATE documents SET title = '';",
    ],
)
def test_what_cannot_be_generated_is_to_be_written_by_hand(statement: str) -> None:
    with pytest.raises(ValueError, match="by hand"):
        for_postgres(f"-- A migration.\n{statement}\n")


def test_the_examples_of_the_schema_document_run_in_a_stock_sqlite(tmp_path: Path) -> None:
    database = filled(tmp_path).database
    (examples,) = re.findall(r"```sql\n(-- sqlite3.*?)```", DOCUMENT, re.DOTALL)
    shell = shutil.which("sqlite3")
    if shell is None:  # tests/run installs it
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        rows = [row for query in examples.splitlines()[1:] for row in connection.execute(query)]
        connection.close()
        out = "\n".join("|".join(map(str, row)) for row in rows)
    else:
        done = subprocess.run(
            [shell, "-readonly", str(database)],
            input=examples,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        out = done.stdout
    assert "notes/plan.md|Road map\n" in out
    assert "notes/zh/备份.md|备份方案" in out
