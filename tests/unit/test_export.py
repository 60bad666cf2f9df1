"""Exports: what they hold, and what is done about damaged and hostile ones."""

from __future__ import annotations

import json
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import ConflictError, InputError, NotFoundError


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "notes").mkdir()
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.add_context("qmd://notes", "What I write down")
        kb.notes.create("notes/plan.md", "one\n")
        kb.notes.create("notes/plan.md", "two\n")
        yield kb


@pytest.fixture
def new(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "new.sqlite", create=True) as kb:
        yield kb


def test_the_history_arrives_and_a_change_can_be_undone(
    kb: KnowledgeBase, new: KnowledgeBase, tmp_path: Path
) -> None:
    kb.export(tmp_path / "export")
    new.import_export(tmp_path / "export")
    file = tmp_path / "notes/plan.md"
    [revision] = new.revisions.history(file)
    assert new.revisions.content(file, revision.number) == b"one\n"
    assert new.undo.undo_last().refused == ()
    assert file.read_text() == "one\n"


def test_folders_of_the_other_machine_may_lie_elsewhere(
    kb: KnowledgeBase, new: KnowledgeBase, tmp_path: Path
) -> None:
    kb.export(tmp_path / "export.zip")
    (tmp_path / "notes").rename(tmp_path / "moved")
    old, here = str(tmp_path / "notes"), str(tmp_path / "moved")
    without = new.import_export(tmp_path / "export.zip", dry_run=True)
    assert [each.subject for each in without.folders.not_taken] == ["notes"]
    new.import_export(tmp_path / "export.zip", moves=[(old, here)])
    assert new.collection("notes").path == here
    assert len(new.revisions.history(f"{here}/plan.md")) == 1


def test_a_history_is_not_mixed_with_another(
    kb: KnowledgeBase, new: KnowledgeBase, tmp_path: Path
) -> None:
    new.add_collection(tmp_path / "notes")
    new.notes.create("notes/other.md", "text\n")
    kb.export(tmp_path / "export")
    report = new.import_export(tmp_path / "export")
    assert (report.changes, report.revisions) == (0, 0)
    assert [each.subject for each in report.folders.not_taken] == ["history"]
    assert len(new.undo.changes()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.parametrize("name", ["export", "export.zip"])
def test_only_the_owner_can_read_it(kb: KnowledgeBase, tmp_path: Path, name: str) -> None:
    kb.export(tmp_path / name)
    for path in (tmp_path / name, *(tmp_path / name).rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("name", ["export", "export.zip"])
def test_an_export_is_replaced_only_by_force_and_nothing_else_is(
    kb: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    kb.export(tmp_path / name)
    with pytest.raises(ConflictError, match="exists"):
        kb.export(tmp_path / name)
    kb.export(tmp_path / name, force=True)
    with pytest.raises(ConflictError, match="no export"):
        kb.export(tmp_path / "notes", force=True)
    assert (tmp_path / "notes/plan.md").is_file()
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("is_export", [False, True])
def test_force_removes_no_folder_that_holds_anything_else(
    kb: KnowledgeBase, tmp_path: Path, is_export: bool
) -> None:
    folder = tmp_path / "project"
    if is_export:
        kb.export(folder)
    else:
        folder.mkdir()
        (folder / "export.json").write_text("{}")
    (folder / "diary.md").write_text("kept")
    with pytest.raises(ConflictError, match=r"diary\.md"):
        kb.export(folder, force=True)
    assert (folder / "diary.md").read_text() == "kept"


def test_force_replaces_no_other_archive(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("kept")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("a.jpg", b"1")
    os.mkfifo(tmp_path / "pipe.zip")
    for name in ("text.zip", "photos.zip", "pipe.zip"):
        with pytest.raises(ConflictError, match="no export"):
            kb.export(tmp_path / name, force=True)


class TestBadExports:
    @pytest.fixture
    def export(self, kb: KnowledgeBase, tmp_path: Path) -> Path:
        kb.export(tmp_path / "export")
        return tmp_path / "export"

    def refused(self, new: KnowledgeBase, export: Path) -> InputError:
        with pytest.raises(InputError) as caught:
            new.import_export(export)
        assert new.collections() == [] and new.contexts() == [] and new.undo.changes() == []
        return caught.value

    def test_a_content_that_is_not_what_its_hash_says(
        self, new: KnowledgeBase, export: Path
    ) -> None:
        [content] = (path for path in export.glob("contents/*/*") if path.is_file())
        content.write_bytes(b"evil\n")
        assert content.name in str(self.refused(new, export))
        content.unlink()
        assert "missing" in str(self.refused(new, export))

    def test_a_content_behind_a_link(
        self, new: KnowledgeBase, export: Path, tmp_path: Path
    ) -> None:
        [content] = (path for path in export.glob("contents/*/*") if path.is_file())
        (tmp_path / "secret").write_bytes(content.read_bytes())
        content.unlink()
        content.symlink_to(tmp_path / "secret")
        self.refused(new, export)

    @pytest.mark.parametrize(
        ("name", "line"),
        [
            ("revisions.jsonl", '{"number": 1'),
            ("revisions.jsonl", "[" * 100_000),
            ("changes.jsonl", '{"number": 1}'),
            ("changes.jsonl", '{"number": 1e999}'),
            ("conversations.jsonl", '{"id": "../../x"}'),
            ("collections.jsonl", '{"name": "\\ud800"}'),
            ("contexts.jsonl", '{"collection": 1, "prefix": "", "text": ""}'),
        ],
    )
    def test_a_record_that_is_none(
        self, new: KnowledgeBase, export: Path, name: str, line: str
    ) -> None:
        (export / name).write_text(line + "\n")
        assert name in str(self.refused(new, export))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("number", 0), ("number", 2**63), ("bytes", 2**80), ("path", "a\0b"), ("hash", "../x")],
    )
    def test_a_value_that_no_database_has(
        self, new: KnowledgeBase, export: Path, field: str, value: object
    ) -> None:
        lines = (export / "revisions.jsonl").read_text().splitlines()
        changed = json.loads(lines[-1]) | {field: value}
        (export / "revisions.jsonl").write_text(json.dumps(changed) + "\n")
        self.refused(new, export)

    def test_the_same_number_twice(self, new: KnowledgeBase, export: Path) -> None:
        text = (export / "changes.jsonl").read_text()
        (export / "changes.jsonl").write_text(text * 2)
        assert "same number" in str(self.refused(new, export))

    def test_one_of_a_newer_program(self, new: KnowledgeBase, export: Path) -> None:
        head = json.loads((export / "export.json").read_text()) | {"version": 99}
        (export / "export.json").write_text(json.dumps(head))
        assert self.refused(new, export).hint == "Upgrade qmd."

    def test_what_is_no_export(self, new: KnowledgeBase, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        assert "markdown-zip" in (self.refused(new, tmp_path / "empty").hint or "")
        (tmp_path / "text.zip").write_text("no archive")
        self.refused(new, tmp_path / "text.zip")
        with pytest.raises(NotFoundError):
            new.import_export(tmp_path / "nowhere")

    def test_a_pipe(self, new: KnowledgeBase, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.zip")
        assert "neither" in str(self.refused(new, tmp_path / "pipe.zip"))

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_a_method_of_compression_that_no_export_has(
        self, new: KnowledgeBase, tmp_path: Path, method: int
    ) -> None:
        file = tmp_path / "export.zip"
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("export.json", "{}")
        damaged = bytearray(file.read_bytes())
        damaged[41:51] = bytes(byte ^ 0x5A for byte in damaged[41:51])  # behind the entry's name
        file.write_bytes(damaged)
        assert "packed in a way" in str(self.refused(new, file))

    def test_an_archive_that_unpacks_to_gigabytes(self, new: KnowledgeBase, tmp_path: Path) -> None:
        bomb = tmp_path / "bomb.zip"
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("export.json", b" " * 30_000_000)
        assert "1,048,576 bytes" in str(self.refused(new, bomb))
