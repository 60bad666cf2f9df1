"""What changed last, and who wrote it."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import InputError
from qmd.search.query import moment

NOW = datetime(2026, 3, 10, 12, tzinfo=timezone.utc)


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "notes").mkdir()
    for day, name in enumerate(("old.md", "older.md", "oldest.md")):
        file = tmp_path / "notes" / name
        file.write_text(f"# {name}\n")
        os.utime(file, (1_700_000_000 - day * 86_400,) * 2)
    kb = KnowledgeBase.open(tmp_path / "index.sqlite", create=True)
    kb.add_collection(tmp_path / "notes", name="notes")
    kb.index()
    return kb


def test_the_latest_change_comes_first(kb: KnowledgeBase) -> None:
    with kb:
        recent = kb.recent(limit=2)
        assert [change.file for change in recent.changes] == ["notes/old.md", "notes/older.md"]
        assert recent.total == 3
        assert recent.changes[0].modified == "2023-11-14T22:13:20.000Z"
        assert {change.by for change in recent.changes} == {"disk"}


def test_since_counts_only_changes_from_then_on(kb: KnowledgeBase) -> None:
    with kb:
        recent = kb.recent(since="2023-11-13T22:13:20Z")
        assert [change.file for change in recent.changes] == ["notes/old.md", "notes/older.md"]
        assert recent.total == 2
        assert kb.recent(since="1h").changes == ()
        assert kb.recent(since="999999y").total == 3


def test_collections_are_merged_by_time(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "between.md").write_text("# b\n")
    os.utime(tmp_path / "more" / "between.md", (1_700_000_000 - 10,) * 2)
    with kb:
        kb.add_collection(tmp_path / "more", name="more")
        kb.index()
        files = [change.file for change in kb.recent(limit=3).changes]
        assert files == ["notes/old.md", "more/between.md", "notes/older.md"]
        assert [each.file for each in kb.recent(collection="more").changes] == ["more/between.md"]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("7d", "2026-03-03T12:00:00.000Z"),
        ("90m", "2026-03-10T10:30:00.000Z"),
        ("2 w", "2026-02-24T12:00:00.000Z"),
        ("2026-03-01T18:00+08:00", "2026-03-01T10:00:00.000Z"),
        ("2026-03-01T18:00", "2026-03-01T18:00:00.000Z"),
        ("999999y", ""),
    ],
)
def test_spans_and_dates(since: str, expected: str) -> None:
    assert moment(since, NOW) == expected


def test_a_day_begins_in_the_local_time_zone() -> None:
    local = datetime(2026, 3, 1).astimezone()
    assert moment("2026-03-01", NOW) == moment(local.isoformat(), NOW)


@pytest.mark.parametrize("since", ["", "soon", "7", "d7", "2026-13-01", "-7d"])
def test_what_is_no_time_is_refused_with_examples(since: str) -> None:
    with pytest.raises(InputError) as caught:
        moment(since, NOW)
    assert "7d" in (caught.value.hint or "")


def test_a_tool_is_named_until_another_program_writes(kb: KnowledgeBase, tmp_path: Path) -> None:
    note = tmp_path / "notes" / "new.md"
    gbk = tmp_path / "notes" / "gbk.md"
    gbk.write_bytes("# 数据库\n\n使用数据库的笔记，写于很久以前的旧编码。\n".encode("gbk"))
    with kb:
        kb.summary.update("First.", str(note), "append")
        kb.summary.update("第二。", str(gbk), "append")
        kb.index()
        recent = {change.file: change for change in kb.recent(limit=2).changes}
        assert {change.by for change in recent.values()} == {"update_summary"}
        assert set(recent) == {"notes/new.md", "notes/gbk.md"}
        assert recent["notes/new.md"].session
        note.write_text("Another program.\n")
        kb.index()
        assert [(each.file, each.by, each.session) for each in kb.recent(limit=1).changes] == [
            ("notes/new.md", "disk", "")
        ]
