"""
Damage anywhere in the database: every command and tool gives a result or an error with a hint,
and the user's files stay as they are.

More of it by hand: ``QMD_DAMAGES=500 pytest tests/e2e/test_damage_anywhere.py``.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qmd import KnowledgeBase, Settings
from qmd.cli.main import main
from qmd.errors import CorruptDatabaseError, QmdError
from qmd.operations import texts
from qmd.store.sqlite import damage
from qmd.store.sqlite.library import dbapi
from qmd.tools.toolsets import select
from qmd.values import Filters
from tests.support import damaged, writes
from tests.support.embedder import HashTokenEmbedder

COUNT = int(os.environ.get("QMD_DAMAGES", "4"))
PARTS = 8  # that pytest's workers share
NOTES = {
    f"n{number}.md": (
        f"---\ntags: [t{number % 3}, work]\naliases: [a{number}]\n"
        f"date: 2025-0{number + 1}-01\n---\n"
        f"# Note {number}\n\nsourdough 数据库 boat{number} [[n{(number + 1) % 8}]] "
        + f"word{number} " * 60
        + "\n\n## Part\n\nmore text\n"
        + "other words " * 250  # two chunks: a projection needs sixteen
        + "\n"
    ).encode()
    for number in range(8)
}
WRITTEN = [f"# Zero {number}\n\nnew text {number}\n".encode() for number in range(3)]


@dataclass(frozen=True)
class Vault:
    """``intact``: the bytes of the database; ``files``: of the notes."""

    root: Path
    intact: bytes
    files: Mapping[str, bytes]

    @property
    def database(self) -> Path:
        return self.root / "kb.sqlite"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    def open(self, *, read_only: bool = True) -> KnowledgeBase:
        return KnowledgeBase.open(
            self.database,
            Settings(embedder=HashTokenEmbedder(), vault=self.notes, posts_dir=self.root),
            read_only=read_only,
        )

    def put(self, data: bytes) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self.database}{suffix}").unlink(missing_ok=True)
        self.database.write_bytes(data)

    def files_now(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.notes.iterdir()}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    root = tmp_path_factory.mktemp("anywhere")
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(home))
        made = Vault(root, b"", {})
        made.notes.mkdir()
        for name, data in NOTES.items():
            (made.notes / name).write_bytes(data)
        (made.notes / "binary.md").write_bytes(b"\0\1\2" * 50)
        with KnowledgeBase.open(
            made.database, Settings(embedder=HashTokenEmbedder()), create=True
        ) as kb:
            kb.add_collection(made.notes, name="notes")
            kb.index()
            kb.add_context("qmd://notes/", "all notes")
            kb.add_context("/", "everything")
            for data in WRITTEN:
                writes.write(kb.files, made.notes / "n0.md", data, tool="test")
            kb.embed()
        files = made.files_now()
        yield Vault(root, made.database.read_bytes(), files)


def uses(vault: Vault) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that reads, by name; the last ones write."""

    def with_kb(use: Callable[[KnowledgeBase], object]) -> Callable[[], object]:
        def run() -> object:
            with vault.open() as kb:
                return use(kb)

        return run

    def command(*args: str) -> Callable[[], object]:
        return lambda: run_command(vault.database, *args)

    for query in ("sourdough", "数据库", '"boat3" -word4', "-boat1", "tag:work", "sour* -more"):
        yield f"search {query}", with_kb(lambda kb, q=query: kb.search(q, limit=None, explain=True))
    narrow = Filters(after="2025-01-02", path="notes", tags=("t1",))
    yield "search with filters", with_kb(lambda kb: kb.search("boat4", filters=narrow))
    yield "vsearch", with_kb(lambda kb: kb.vsearch("sourdough", min_score=0, explain=True))
    yield "query", with_kb(lambda kb: kb.query("sourdough boat3", limit=None, explain=True))
    yield "get", with_kb(lambda kb: [kb.get(f"notes/{name}") for name in NOTES])
    yield "documents", with_kb(lambda kb: kb.documents())
    yield "why", with_kb(lambda kb: kb.why(vault.notes / "binary.md"))
    yield "doctor", with_kb(lambda kb: kb.doctor(home=vault.root))
    yield "freshness", with_kb(lambda kb: kb.freshness())
    first = str(vault.notes / "n0.md")
    for args in (
        *(("status",), ("ls",), ("ls", "notes"), ("collection", "list")),
        *(("search", "sourdough", "--json"), ("search", "sourdough", "--csv", "--full")),
        *(("query", "sourdough"), ("vsearch", "boat"), ("get", "n3.md", "--json")),
        *(("multi-get", "*.md", "--xml"), ("collection", "show", "notes"), ("context", "list")),
        *(("history", first), ("history", first, "--show", "1"), ("why", first)),
        *(("models", "list"), ("cleanup", "--dry-run"), ("note", "read", "n3"), ("doctor",)),
        ("backup", "--force", str(vault.root / "copy.sqlite")),
    ):
        yield " ".join(args), command(*args)
    tools = {tool.name: tool for tool in select().tools}
    for name, arguments in (
        ("search", {"query": "sourdough"}),
        ("query", {"query": "boat"}),
        ("get", {"file": "n3.md"}),
        ("multi_get", {"pattern": "*.md"}),
        ("status", {}),
        ("list_posts", {"author": "notes"}),
        ("search_posts", {"query": "sourdough"}),
        ("read_note", {"path": "n3"}),
        ("list_folder", {"path": ""}),
    ):
        call = tools[name].call
        yield f"tool {name}", with_kb(lambda kb, c=call, a=arguments: c(kb, a, texts.MCP))

    def restore() -> object:
        with vault.open(read_only=False) as kb:
            return kb.revisions.restore(vault.notes / "n0.md")

    def index() -> None:
        with vault.open(read_only=False) as kb:
            kb.index()
            kb.embed()
            kb.cleanup()

    yield "restore", restore
    yield "index", index


def run_command(database: Path, *args: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--db", str(database), *args])
    assert code in (0, 1), err.getvalue()


def assert_harmless(vault: Vault, made_by: str) -> None:
    """Each use answers or says what to do, and no file holds what nobody wrote."""
    genuine = {NOTES["n0.md"], *WRITTEN}
    for name, use in uses(vault):
        try:
            use()
        except QmdError as error:
            if isinstance(error, CorruptDatabaseError):
                assert "qmd db rescue --db" in (error.hint or "")
        except Exception as error:
            raise AssertionError(f"{made_by}: {name}") from error
        now = vault.files_now()
        if now != vault.files:
            assert name == "restore", (made_by, name)
            assert now.pop("n0.md") in genuine, made_by
            assert now == {n: data for n, data in vault.files.items() if n != "n0.md"}, made_by
            (vault.notes / "n0.md").write_bytes(vault.files["n0.md"])


#: The first part of the seeds in each run, the others at night.
EACH_PART = [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, PARTS))]


@pytest.mark.parametrize("part", EACH_PART)
def test_flipped_bytes_are_a_result_or_an_error_with_a_hint(vault: Vault, part: int) -> None:
    for seed in range(part, PARTS * COUNT, PARTS):
        vault.put(damaged.flip(vault.intact, seed))
        assert_harmless(vault, f"flip {seed}")


@pytest.mark.parametrize("part", EACH_PART)
def test_a_wrong_value_in_any_cell_is_a_result_or_an_error_with_a_hint(
    vault: Vault, part: int
) -> None:
    vault.put(vault.intact)
    kinds = [
        (*cell, value, every)
        for cell in damaged.cells(vault.database)
        for value in damaged.VALUES
        for every in (False, True)
    ]
    random.Random(17).shuffle(kinds)
    for table, column, value, every_row in kinds[part : PARTS * COUNT : PARTS]:
        vault.put(vault.intact)
        if damaged.set_cell(vault.database, table, column, value, every_row=every_row):
            assert_harmless(vault, f"{table}.{column} = {value[:40]}, every row: {every_row}")


@pytest.mark.parametrize(
    ("table", "column", "value", "asked"),
    [
        ("documents", "text", "CAST(x'ff80' AS TEXT)", "get"),
        ("documents", "title", "x'00ff'", "documents"),
        ("documents", "body_start", "'x'", "search sourdough"),
        ("documents", "properties", "'{'", "doctor"),
        ("collections", "ignore", "'[1'", "collection list"),
        ("collections", "path", "char(0)", "collection list"),
        ("collections", "name", "x'6e'", "status"),
        ("contexts", "text", "CAST(x'c3' AS TEXT)", "search sourdough"),
        ("z_embeddings", "vector", "x'007e'", "vsearch"),
        ("z_embeddings", "vector", f"x'{'007e' * 384}'", "vsearch"),
        ("z_models", "dimension", "'many'", "status"),
        ("z_meta", "value", "'x'", "doctor"),
        ("revisions", "content", "x'00'", "history n0"),
        ("chunks", "end_char", "'x'", "vsearch"),
        ("skipped_files", "detail", "x'00'", "status"),
        ("documents", "collection_id", "4611686018427387904", "search sourdough"),
    ],
)
def test_a_wrong_value_where_it_counts_is_called_damage(
    vault: Vault, table: str, column: str, value: str, asked: str
) -> None:
    vault.put(vault.intact)
    assert damage.find(vault.database) is None
    assert damaged.set_cell(vault.database, table, column, value, every_row=True)
    assert damage.find(vault.database) is not None
    ask: Mapping[str, Callable[[KnowledgeBase], Any]] = {
        "get": lambda kb: kb.get("notes/n1.md"),
        "documents": lambda kb: kb.documents(),
        "search sourdough": lambda kb: kb.search("sourdough"),
        "collection list": lambda kb: kb.collections(),
        "status": lambda kb: kb.status(),
        "vsearch": lambda kb: kb.vsearch("sourdough", min_score=0),
        "history n0": lambda kb: kb.revisions.content(
            vault.notes / "n0.md", kb.revisions.history(vault.notes / "n0.md")[0].number
        ),
    }
    with vault.open() as kb:
        if asked == "doctor":
            checks = {check.name: check for check in kb.doctor(home=vault.root)}
            assert checks["integrity"].status == "error"
            assert "qmd db rescue" in (checks["integrity"].remedy or "")
            return
        with pytest.raises(CorruptDatabaseError) as caught:
            ask[asked](kb)
    assert f"qmd db rescue --db {vault.database}" in (caught.value.hint or "")


def test_a_mistake_of_ours_is_not_taken_for_damage(vault: Vault) -> None:
    vault.put(vault.intact)

    def mistaken(kb: KnowledgeBase) -> None:
        with kb._store.reading():
            raise KeyError("a mistake")

    with vault.open() as kb, pytest.raises(KeyError):
        mistaken(kb)
    holder = dbapi.connect(vault.database, isolation_level=None)
    holder.execute("PRAGMA journal_mode = DELETE")
    with vault.open() as kb:
        holder.execute("BEGIN EXCLUSIVE")  # nobody else can read, so nobody can tell
        assert damage.find(vault.database, timeout=0.05) is None
    holder.close()
    assert damage.find(vault.root / "none.sqlite") is None
