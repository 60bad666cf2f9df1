"""A stock sqlite3 shell opens the file, searches it, and may delete rows from it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from tests.support.dump import assert_sound, dump
from tests.support.embedder import HashEmbedder

SHELL = shutil.which("sqlite3")
pytestmark = pytest.mark.skipif(SHELL is None, reason="there is no sqlite3 shell")

FILES = {
    "plan.md": "---\ntags: [work]\naliases: [road map]\n---\n# Plan\n\nSee [[retro]] soon.\n",
    "retro.md": "# Retro\n\nDeploying took long. #team\n",
    "zh/备份.md": "# 备份方案\n\n每天备份数据库。恢复时先停止写入。\n",
}


def shell(database: Path, sql: str) -> list[str]:
    assert SHELL is not None
    done = subprocess.run(
        [SHELL, "-batch", "-bail", str(database), sql], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


UNUSED_TARGETS = "SELECT target FROM z_link_targets WHERE id NOT IN (SELECT target_id FROM z_links)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "bad.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    return root


@pytest.fixture
def database(tmp_path: Path, root: Path) -> Path:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        kb.embed()
    return path


def test_every_view_shows_its_rows(database: Path) -> None:
    views = shell(database, "SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name")
    assert views == [
        "links", "properties", "v_chunks", "v_contexts", "v_documents", "v_history", "v_hits",
        "v_links", "v_observations", "v_skipped", "v_tasks", "z_documents_fts_text",
    ]  # fmt: skip
    counts = {view: int(shell(database, f"SELECT count(*) FROM {view}")[0]) for view in views}
    assert counts == {
        "links": 1, "properties": 2, "z_documents_fts_text": 3, "v_chunks": 3, "v_documents": 3,
        "v_hits": 3, "v_links": 1, "v_skipped": 1, "v_contexts": 0, "v_history": 0, "v_tasks": 0,
        "v_observations": 0,
    }  # fmt: skip
    assert shell(database, "SELECT file, target_file FROM v_links") == [
        "notes/plan.md|notes/retro.md"
    ]
    assert shell(database, "SELECT file, reason FROM v_skipped") == ["notes/bad.md|binary"]
    assert shell(database, "SELECT tags FROM v_documents WHERE path = 'plan.md'") == ['["work"]']


@pytest.mark.parametrize(
    ("match", "files"),
    [
        ("deploy", ["notes/retro.md"]),
        ('"数据 据库"', ["notes/zh/备份.md"]),
        ('"备份 份数 数据"', ["notes/zh/备份.md"]),
        ('"库" *', ["notes/zh/备份.md"]),
        ('"据备"', []),
        ("retro", ["notes/plan.md", "notes/retro.md"]),
    ],
)
def test_full_text_is_searched_by_hand(database: Path, match: str, files: list[str]) -> None:
    sql = f"SELECT file FROM v_hits WHERE v_hits.match MATCH '{match}' ORDER BY file"
    assert shell(database, sql) == files


def test_the_file_is_one_file_without_damage(database: Path) -> None:
    assert [p.name for p in database.parent.iterdir() if "kb" in p.name] == ["kb.sqlite"]
    assert shell(database, "PRAGMA integrity_check") == ["ok"]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM documents WHERE path = 'retro.md'",
        "DELETE FROM documents",
        "DELETE FROM collections",
    ],
)
def test_rows_deleted_by_hand_leave_nothing_that_the_next_document_would_get(
    tmp_path: Path, root: Path, database: Path, sql: str
) -> None:
    shell(database, sql)
    tables = ("chunks", "tags", "aliases", "links")
    for table in tables:
        orphans = (
            f"SELECT count(*) FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"
        )
        assert shell(database, orphans) == ["0"], table
    vectors = "SELECT count(*) FROM z_vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
    assert shell(database, vectors) == ["0"]
    assert shell(database, UNUSED_TARGETS) == []
    assert_sound(database)
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        if not kb.collections():
            kb.add_collection(root, name="notes")
        kb.query("Deploying took long")
        kb.index()
        kb.embed()
        assert [hit.path for hit in kb.vsearch("Deploying took long", limit=1).hits] == ["retro.md"]
        with kb._store.reading() as reader:
            assert not any(reader.upkeep.count_leftovers().values())
    fresh = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(fresh, create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
    assert dump(database) == dump(fresh)


def test_what_links_lead_to_is_stored_once_and_no_longer_than_they_do(tmp_path: Path) -> None:
    notes, path = tmp_path / "links", tmp_path / "links.sqlite"
    notes.mkdir()
    (notes / "a.md").write_text("[[Plan]] [[Plan#Goals]] [site](https://a.example) ![](plan.png)")
    (notes / "b.md").write_text("[[Plan|the plan]] ![[Plan]] [plan](Plan) [[c]]")
    targets = "SELECT kind, target, target_key FROM z_link_targets ORDER BY kind, target"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        assert shell(path, targets) == [
            "embed|Plan|plan", "image|plan.png|plan.png", "link|Plan|plan",
            "link|https://a.example|", "wikilink|Plan|plan", "wikilink|c|c",
        ]  # fmt: skip
        (notes / "a.md").unlink()
        (notes / "b.md").write_text("[[Plan]] [[d]]")
        kb.index()
    assert shell(path, targets) == ["wikilink|Plan|plan", "wikilink|d|d"]
    assert shell(path, UNUSED_TARGETS) == []


def test_the_full_text_keeps_no_second_copy_of_plain_english(database: Path) -> None:
    kept = shell(database, "SELECT count(body) FROM z_searchable WHERE document_id IN"
                           " (SELECT id FROM documents WHERE path = 'plan.md')")  # fmt: skip
    assert kept == ["0"]


def test_a_rebuild_by_hand_loses_no_chinese(database: Path) -> None:
    shell(database, "INSERT INTO z_documents_fts (z_documents_fts) VALUES ('rebuild')")
    sql = "SELECT file FROM v_hits WHERE v_hits.match MATCH '\"备份 份数 数据\"'"
    assert shell(database, sql) == ["notes/zh/备份.md"]
    assert_sound(database)


def test_a_text_changed_by_hand_leaves_the_full_text_sound(database: Path) -> None:
    shell(database, "UPDATE documents SET text = 'other', body_start = 0 WHERE path = 'plan.md'")
    shell(database, "DELETE FROM documents WHERE path = 'retro.md'")
    with KnowledgeBase.open(database) as kb:
        assert kb.index().updated == 1
    assert_sound(database)
    assert shell(database, "SELECT count(*) FROM documents WHERE text = 'other'") == ["0"]
