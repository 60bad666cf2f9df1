"""Tools of others open the file as it is: datasette, sqlite-utils, SQLite without extensions."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from sqlite_utils import Database

from qmd import KnowledgeBase, Settings
from tests.support.embedder import HashEmbedder

LONG = "# Long\n\n" + "word " * 2000 + "\n"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kb")
    root = directory / "notes"
    root.mkdir()
    (root / "plan.md").write_text("---\ntags: [work, home]\n---\n# Plan\n\nSee [[long]].\n")
    (root / "long.md").write_text(LONG)
    (root / "zh.md").write_text("使用数据库。\n", encoding="utf-8")
    path = directory / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        kb.add_context("/", "everything")
        kb.add_context("notes/sub", "a part")
        kb.create_note("notes/new.md", "first\n")
        kb.replace_note("notes/new.md", "second\n")
        kb.embed()
    return path


def names(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return [name for (name,) in rows]
    finally:
        connection.close()


def fetch(database: Path, *paths: str) -> list[tuple[int, str]]:
    async def ask() -> list[tuple[int, str]]:
        datasette = Datasette(files=[str(database)])
        replies = [await datasette.client.get(path) for path in paths]
        return [(reply.status_code, reply.text) for reply in replies]

    return asyncio.run(ask())


def test_datasette_opens_every_table_and_view(database: Path) -> None:
    paths = ["/", "/kb", *(f"/kb/{name}" for name in names(database))]
    statuses = dict(zip(paths, (status for status, _ in fetch(database, *paths)), strict=True))
    assert set(statuses.values()) == {200}, statuses


def test_datasette_offers_to_search_the_documents_and_finds_them(database: Path) -> None:
    (_, page), (_, reply) = fetch(
        database, "/kb/documents", "/kb/documents.json?_search=plan&_shape=array"
    )
    assert 'name="_search"' in page
    assert [row["path"] for row in json.loads(reply)] == ["plan.md"]


def test_sqlite_utils_counts_every_table_and_knows_the_full_text(database: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlite_utils", "tables", str(database), "--counts"],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = {row["table"]: row["count"] for row in json.loads(done.stdout)}
    assert (counts["documents"], counts["z_vectors"]) == (4, counts["chunks"])
    assert Database(database)["documents"].detect_fts() == "z_documents_fts"


def test_only_full_text_is_a_virtual_table(database: Path) -> None:
    connection = sqlite3.connect(database)
    try:
        virtual = connection.execute("SELECT name FROM sqlite_master WHERE rootpage = 0"
                                     " AND type = 'table'").fetchall()  # fmt: skip
        assert virtual == [("z_documents_fts",)]
        counts = {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for name in names(database)
        }
    finally:
        connection.close()
    assert counts["z_vectors"] == counts["chunks"] > 1


def test_datasette_counts_the_documents_of_each_tag(database: Path) -> None:
    """Also on the table that it can search."""
    tables = ("v_documents", "documents")
    for _, reply in fetch(
        database,
        *(f"/kb/{name}.json?_facet_array=tags&tags__arraycontains=work" for name in tables),
    ):
        facets = json.loads(reply)["facet_results"]["tags"]["results"]
        assert {facet["value"]: facet["count"] for facet in facets} == {"home": 1, "work": 1}


def test_a_plain_sqlite_reads_what_the_file_is_for(database: Path) -> None:
    connection = sqlite3.connect(database)

    def rows(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query).fetchall()

    with closing(connection):
        about = dict(rows("SELECT subject, text FROM about"))
        assert "z_" in about.pop("README")
        for query in about.values():
            rows(query)
        assert rows("SELECT file FROM v_documents WHERE text LIKE '%数据库%'") == [("notes/zh.md",)]
        assert rows("SELECT place, text FROM v_contexts ORDER BY 1") == [
            ("", "everything"), ("notes/sub", "a part")
        ]  # fmt: skip
        assert rows("SELECT action, file, moved_from, text FROM v_history ORDER BY id") == [
            ("create", "notes/new.md", None, None), ("write", "notes/new.md", None, "first\n")
        ]  # fmt: skip


def test_each_statement_has_a_comment_and_machinery_comes_last(database: Path) -> None:
    connection = sqlite3.connect(database)
    with closing(connection):
        statements = dict(
            connection.execute(
                "SELECT m.name, m.sql FROM sqlite_master m JOIN pragma_table_list t USING (name)"
                " WHERE m.type IN ('table', 'view') AND t.type <> 'shadow'"
                " AND name NOT IN ('sqlite_sequence', '_sqlite_migrations')"
            )
        )
    for name, sql in statements.items():
        assert re.search(r"--|/\*", sql), name
    people = {name for name in statements if not name.startswith("z_")}
    assert max(people) < min(set(statements) - people)
    assert {"about", "documents", "tags", "collections", "chunks", "v_documents"} <= people


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("collections", ("ignore", "excluded")),
        ("documents", ("properties", "warnings")),
        ("v_documents", ("tags",)),
    ],
)
def test_columns_that_hold_lists_or_objects_hold_json(
    database: Path, table: str, columns: tuple[str, ...]
) -> None:
    connection = sqlite3.connect(database)
    try:
        for column in columns:
            values = [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]
            assert values
            assert all(isinstance(json.loads(value), (list, dict)) for value in values)
        if table == "v_documents":
            tags: Any = connection.execute(
                "SELECT tags FROM v_documents WHERE path = 'plan.md'"
            ).fetchone()[0]
            assert sorted(json.loads(tags)) == ["home", "work"]
    finally:
        connection.close()
