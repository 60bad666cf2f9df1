"""A knowledge base in PostgreSQL, through the facade that all faces call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.kb import KnowledgeBase
from qmd.store import open_store
from qmd.system import clock
from qmd.values.chats import StoredTurn
from qmd.values.location import ServerDatabase
from tests.support.live import put

NOTES = {
    "plan.md": "---\naliases: [roadmap]\nstatus: draft\nrating: 4\ntags: [work/plans]\n---\n"
    "# Plan\n\nSee [[data]].\n",
    "data.md": "---\nstatus: done\ndate: 2025-03-01\n---\n# Data\n\nrows #work\n",
    "deep/old.md": "# Old\n\nnothing of interest\n",
    "deep/数据库.md": "# 数据库\n\n字符集\n",
}


@pytest.fixture
def kb(tmp_path: Path, postgres_database: ServerDatabase) -> Iterator[KnowledgeBase]:
    for name, text in NOTES.items():
        put(tmp_path / "notes" / name, text)
    with KnowledgeBase(open_store(postgres_database)) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
        yield kb


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("notes/plan.md", "plan.md"),
        ("plan", "plan.md"),
        ("Roadmap", "plan.md"),
        ("deep/old", "deep/old.md"),
        ("数据库", "deep/数据库.md"),
        ("qmd://notes/data.md", "data.md"),
    ],
)
def test_a_document_has_many_names(kb: KnowledgeBase, name: str, path: str) -> None:
    document = kb.get(name).document
    assert document.path == path
    assert kb.get(document.docid).document.path == path


def test_documents_are_listed_sorted_and_grouped(kb: KnowledgeBase) -> None:
    assert [each.path for each in kb.documents()] == sorted(NOTES)
    assert [each.path for each in kb.documents("notes/deep")] == ["deep/old.md", "deep/数据库.md"]
    assert [each.path for each in kb.documents(properties=["status:draft"])] == ["plan.md"]
    assert kb.documents(sort="-rating")[0].path == "plan.md"
    assert kb.documents(sort="date", limit=1)[0].path == "data.md"
    assert {each.group for each in kb.documents(group_by="status")} >= {"draft", "done"}
    assert kb.count_documents() == 4
    assert {each.document.path for each in kb.multi_get("notes/deep/*.md").documents} == {
        "deep/old.md",
        "deep/数据库.md",
    }


def test_reports_and_counts(kb: KnowledgeBase) -> None:
    assert {change.file for change in kb.recent().changes} == {f"notes/{name}" for name in NOTES}
    assert {tag.tag for tag in kb.tags().tags} >= {"work"}
    assert kb.status().total_documents == 4
    assert {each.key for each in kb.properties()} >= {"status", "rating"}
    assert [each.path for each in kb.collections()]
    assert kb.overview().documents == 4


def test_conversations_are_kept(kb: KnowledgeBase) -> None:
    turn = StoredTurn(1, "What is planned?", "", "running", clock.now(), 0.0, "ended:1", "", "[]")
    kb.begin_chat_turn("3f9a", "Plans", "read", turn)
    assert [each.id for each in kb.chats().chats] == ["3f9a"]
    assert kb.end_abandoned_turns() == 1
    kb.rename_chat("3f9a", "Other plans")
    assert kb.stored_chat("3f9a")[2][0].status == "interrupted"
    assert [each.name for each in kb.chats("planned").chats] == ["Other plans"]
    kb.delete_chat("3f9a")
    assert list(kb.chats().chats) == []
