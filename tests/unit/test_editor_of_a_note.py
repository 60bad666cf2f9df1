"""What an editor for people needs: the source of a note, saving, creating, ticking."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.site import Served, serve

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    EditError,
    FileChangedError,
    InvalidPathError,
    OutsideRootsError,
)
from qmd.files.edits.operations import tasks_of

NOTES = {
    "plan.md": "# Plan\n\n- [ ] buy\n- [ ] sell\n",
    "windows.md": b"\xef\xbb\xbf# Plan\r\n\r\nText\r\n",
    "gbk.md": "# 计划\n\n买一条船，我们在这里说明计划。\n".encode("gbk"),
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES, embed=False) as server:
        yield server


@pytest.mark.parametrize("name", NOTES)
def test_saving_what_was_read_changes_nothing(served: Served, name: str) -> None:
    before = (served.folder / name).read_bytes()
    source = served.kb.note_source(f"notes/{name}")
    assert "\r" not in source.text
    saved = served.kb.replace_note(source.file, source.text, if_docid=source.docid)
    assert not saved.written
    assert (served.folder / name).read_bytes() == before


def test_a_saved_note_keeps_mark_line_ends_and_encoding(served: Served) -> None:
    for name in NOTES:
        source = served.kb.note_source(f"notes/{name}")
        saved = served.kb.replace_note(source.file, f"{source.text}好\n", if_docid=source.docid)
        assert saved.written
    assert (served.folder / "windows.md").read_bytes().endswith("Text\r\n好\r\n".encode())
    assert (served.folder / "windows.md").read_bytes().startswith(b"\xef\xbb\xbf#")
    assert (served.folder / "gbk.md").read_bytes().decode("gbk").endswith("\n好\n")


def test_a_note_that_changed_meanwhile_is_not_overwritten(served: Served) -> None:
    source = served.kb.note_source("notes/plan.md")
    (served.folder / "plan.md").write_text("# Other\n", encoding="utf-8")
    with pytest.raises(FileChangedError) as caught:
        served.kb.replace_note(source.file, "# Mine\n", if_docid=source.docid)
    assert caught.value.text_read == NOTES["plan.md"]
    assert (served.folder / "plan.md").read_text(encoding="utf-8") == "# Other\n"


def test_a_new_note_is_in_the_index_and_can_be_undone(served: Served) -> None:
    created = served.kb.create_note("notes/new/Boat", "# Boat\n\nA boat.\n")
    assert created.file == "notes/new/Boat.md"
    assert served.kb.get(created.file).text.startswith("# Boat")
    assert created.change is not None
    served.kb.undo.undo_change(created.change)
    assert not (served.folder / "new/Boat.md").exists()


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("notes/plan", ConflictError),
        ("notes/plan.md", ConflictError),
        ("notes/.hidden", ConflictError),
        ("notes/a?b", InvalidPathError),
        ("notes/../x", InvalidPathError),
        ("elsewhere/x", InvalidPathError),
        ("notes/", InvalidPathError),
        ("", InvalidPathError),
    ],
)
def test_a_path_that_no_new_note_can_have_is_refused(
    served: Served, path: str, error: type[Exception]
) -> None:
    before = {each.name for each in served.folder.rglob("*")}
    with pytest.raises(error):
        served.kb.create_note(path, "text")
    assert {each.name for each in served.folder.rglob("*")} == before


def test_a_folder_in_the_way_is_refused(served: Served) -> None:
    (served.folder / "folder.md").mkdir()
    with pytest.raises(ConflictError):
        served.kb.create_note("notes/folder", "text")


def test_a_task_is_ticked_at_the_line_that_the_person_sees(served: Served) -> None:
    docid = served.kb.note_source("notes/plan.md").docid
    ticked = served.kb.tick_task("notes/plan.md", 4, done=True, if_docid=docid)
    assert "- [x] sell" in (served.folder / "plan.md").read_text(encoding="utf-8")
    # The first docid still says which task is meant, and so does the new one.
    served.kb.tick_task("notes/plan.md", 3, done=True, if_docid=docid)
    served.kb.tick_task("notes/plan.md", 4, done=False, if_docid=ticked.docid)
    text = (served.folder / "plan.md").read_text(encoding="utf-8")
    assert [task.is_done for task in tasks_of(text)] == [True, False]


def test_a_task_is_found_though_the_note_was_changed_by_hand(served: Served) -> None:
    docid = served.kb.note_source("notes/plan.md").docid
    path = served.folder / "plan.md"
    path.write_text("- [ ] new\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    served.kb.tick_task("notes/plan.md", 4, done=True, if_docid=docid)
    assert "- [x] sell" in path.read_text(encoding="utf-8")
    docid = served.kb.note_source("notes/plan.md").docid
    path.write_text("- [ ] buy\n- [ ] buy\n", encoding="utf-8")
    with pytest.raises(EditError):
        served.kb.tick_task("notes/plan.md", 4, done=True, if_docid=docid)
    with pytest.raises(FileChangedError):
        served.kb.tick_task("notes/plan.md", 1, done=True, if_docid="#0123456789")


def test_where_nothing_may_be_written_the_source_says_so(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with serve(tmp_path, NOTES, embed=False, settings={"write_roots": [other]}) as served:
        refusal = served.kb.note_source("notes/plan.md").refusal
        assert refusal is not None
        assert "--write-root" in refusal
        assert served.kb.writable_collections() == []
        with pytest.raises(OutsideRootsError):
            served.kb.create_note("notes/x", "text")


def test_collections_in_which_notes_may_be_created(served: Served) -> None:
    assert [each.name for each in served.kb.writable_collections()] == ["notes"]
    settings = dataclasses.replace(Settings(), read_only_files=True)
    with KnowledgeBase.open(served.kb.path, settings) as kb:
        assert kb.writable_collections() == []
