"""kb.files: files are deleted into the history and moved over nothing, and changes are recorded."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    FileChangedError,
    OutsideRootsError,
    SteeringFileError,
    WriteDeclinedError,
)
from qmd.files.writing import directories
from qmd.files.writing.locked_folder import LockedFolder, locked
from qmd.store.sql.revisions import MAX_REVISION_BYTES
from qmd.system.session import in_session
from qmd.values.proposed import Proposed, ProposedDeletion, ProposedMove
from qmd.values.writing import FileChange
from tests.support import writes

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and links")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        yield kb


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def changes(kb: KnowledgeBase) -> list[FileChange]:
    """All changes, oldest first."""
    with kb._store.reading() as reader:
        return reader.revisions.changes(limit=100)[::-1]


def steps(change: FileChange) -> list[tuple[str, str]]:
    return [(each.action, Path(each.path).name) for each in change.files]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- deleting ----------------------------------------------------------------------------


def test_a_deleted_file_is_in_the_history_and_not_in_the_index(
    kb: KnowledgeBase, notes: Path
) -> None:
    path = writes.write(kb.files, notes / "a.md", b"sourdough", tool="test").path
    written = writes.delete(kb.files, path, tool="delete_note")
    assert (written.path, written.existed, written.bytes) == (path, True, 0)
    assert contents(notes) == {}
    assert kb.search("sourdough").hits == ()
    (revision,) = kb.revisions.history(path)
    assert (revision.action, revision.tool, revision.hash_after) == ("delete", "delete_note", "")
    assert kb.revisions.content(path, revision.number) == b"sourdough"
    kb.revisions.restore(path)
    assert path.read_bytes() == b"sourdough"


def test_only_what_was_read_is_deleted(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes(b"new")
    with pytest.raises(FileChangedError, match="has changed since it was read"):
        writes.delete(kb.files, notes / "a.md", tool="test", if_hash=digest(b"old"))
    with pytest.raises(FileNotFoundError):
        writes.delete(kb.files, notes / "b.md", tool="test")
    assert contents(notes) == {"a.md": b"new"}
    assert changes(kb) == []
    writes.delete(kb.files, notes / "a.md", tool="test", if_hash=digest(b"new"))
    assert contents(notes) == {}


@pytest.mark.parametrize("kind", ["folder", "read-only", "outside"])
def test_what_may_not_be_deleted_stays(
    kb: KnowledgeBase, tmp_path: Path, notes: Path, kind: str
) -> None:
    path = notes / "a.md"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text("old")
    if kind == "read-only":
        path.chmod(0o444)
    error: type[Exception] = OSError
    if kind == "outside":
        kb._settings = Settings(write_roots=[tmp_path / "elsewhere"])
        error = OutsideRootsError
    with pytest.raises(error):
        writes.delete(kb.files, path, tool="test")
    assert path.exists()
    assert changes(kb) == []


def test_a_file_too_long_to_be_kept_is_not_deleted(kb: KnowledgeBase, notes: Path) -> None:
    content = os.urandom(MAX_REVISION_BYTES + 1)
    (notes / "a.md").write_bytes(content)
    with pytest.raises(ConflictError):
        writes.delete(kb.files, notes / "a.md", tool="test")
    assert contents(notes) == {"a.md": content}


# --- moving ------------------------------------------------------------------------------


def test_a_moved_file_is_the_same_document(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes(b"# A\n\nsourdough\n")
    kb.index()
    heard: list[tuple[str, str | None, str | None]] = []
    kb.events.subscribe(lambda event: heard.append((event.kind, event.file, event.previous)))
    written = writes.move(kb.files, notes / "a.md", notes / "new/b.md", tool="move_note")
    assert written.path == notes / "new/b.md"
    assert contents(notes) == {"new/b.md": b"# A\n\nsourdough\n"}
    assert heard == [("moved", "notes/new/b.md", "a.md")]
    assert [hit.file for hit in kb.search("sourdough").hits] == ["notes/new/b.md"]
    (revision,) = kb.revisions.history(notes / "new/b.md")
    assert (revision.action, revision.moved_from) == ("move", str(notes / "a.md"))
    assert kb.revisions.history(notes / "a.md") == [revision]


def test_nothing_is_overwritten_by_a_move(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes(b"a")
    (notes / "b.md").write_bytes(b"b")
    (notes / "folder").mkdir()
    for target in ("b.md", "folder", "a.md"):
        with pytest.raises(FileExistsError):
            writes.move(kb.files, notes / "a.md", notes / target, tool="test")
    with pytest.raises(FileNotFoundError):
        writes.move(kb.files, notes / "none.md", notes / "new/c.md", tool="test")
    with pytest.raises(FileChangedError):
        writes.move(kb.files, notes / "a.md", notes / "c.md", tool="test", if_hash=digest(b"old"))
    assert contents(notes) == {"a.md": b"a", "b.md": b"b"}
    assert names(notes) == ["a.md", "b.md", "folder"]
    assert changes(kb) == []


@posix
def test_nothing_is_moved_onto_a_link_that_leads_nowhere(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes(b"a")
    (notes / "link.md").symlink_to(notes / "none.md")
    with pytest.raises(FileExistsError):
        writes.move(kb.files, notes / "a.md", notes / "link.md", tool="test")
    assert (notes / "link.md").is_symlink()


def test_a_move_stays_below_the_write_roots(kb: KnowledgeBase, tmp_path: Path, notes: Path) -> None:
    (tmp_path / "out.md").write_bytes(b"out")
    (notes / "a.md").write_bytes(b"a")
    kb._settings = Settings(write_roots=[notes])
    for source, target in (("notes/a.md", "b.md"), ("out.md", "notes/b.md")):
        with pytest.raises(OutsideRootsError):
            writes.move(kb.files, tmp_path / source, tmp_path / target, tool="test")
    assert contents(notes) == {"a.md": b"a"}


@posix
@pytest.mark.parametrize("system", ["one step", "links", "neither"])
def test_every_way_to_rename_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    def refused(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    if system != "one step":
        monkeypatch.setattr(directories, "_system_call", lambda: None)
    if system == "neither":
        monkeypatch.setattr(os, "link", refused)
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    with pytest.raises(FileExistsError):
        directories.rename_exclusive(str(one), str(two))
    assert contents(tmp_path) == {"one": b"1", "two": b"2"}
    directories.rename_exclusive(str(one), str(tmp_path / "three"))
    assert contents(tmp_path) == {"three": b"1", "two": b"2"}
    with pytest.raises(FileNotFoundError):
        directories.rename_exclusive(str(one), str(tmp_path / "four"))


def test_a_rename_in_case_alone(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "note.md").write_bytes(b"# Note\n")
    kb.index()
    writes.move(kb.files, notes / "note.md", notes / "Note.md", tool="test")
    assert names(notes) == ["Note.md"]
    assert kb.get("notes/Note.md").text == "# Note\n"


def test_a_rename_in_case_alone_on_a_disk_that_ignores_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a disk says that the new name is there: it is the same file."""
    (tmp_path / "note.md").write_bytes(b"a")
    stat = LockedFolder._stat
    monkeypatch.setattr(LockedFolder, "_stat", lambda folder, name: stat(folder, name.lower()))
    with locked(tmp_path) as folder:
        assert folder._is_in_other_case("note.md", "Note.md")
        folder.move("note.md", folder, "Note.md")
    assert names(tmp_path) == ["Note.md"]


@posix
def test_two_names_of_one_file_are_no_rename_in_case_alone(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "note.md").write_bytes(b"a")
    (notes / "Note.md").hardlink_to(notes / "note.md")
    with pytest.raises(FileExistsError):
        writes.move(kb.files, notes / "note.md", notes / "Note.md", tool="test")
    assert names(notes) == ["Note.md", "note.md"]


# --- changes -----------------------------------------------------------------------------


def test_a_change_of_several_files_is_recorded_as_one(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes(b"a")
    (notes / "b.md").write_bytes(b"b")
    (notes / "c.md").write_bytes(b"c")
    with in_session("s1"), kb.files.change(tool="move_note") as change:
        change.move(notes / "a.md", notes / "folder/a.md")
        change.rewrite(notes / "b.md", lambda present: (present or b"") + b"!")
        change.delete(notes / "c.md")
        change.rewrite(notes / "d.md", lambda _: b"d")
        change.rewrite(notes / "d.md", lambda _: b"d")  # nothing new
        change.rewrite(notes / "d.md", lambda present: (present or b"") + b"e")
    assert contents(notes) == {"folder/a.md": b"a", "b.md": b"b!", "d.md": b"de"}
    (stored,) = changes(kb)
    assert (stored.number, stored.tool, stored.session) == (change.number, "move_note", "s1")
    assert steps(stored) == [
        ("move", "a.md"),
        ("write", "b.md"),
        ("delete", "c.md"),
        ("create", "d.md"),
        ("write", "d.md"),
    ]
    assert [each.hash_after for each in stored.files] == [
        *(digest(b"a"), digest(b"b!"), ""),
        *(digest(b"d"), digest(b"de")),
    ]
    assert kb.status().total_documents == 3


def test_what_a_failed_change_has_written_is_recorded_and_indexed(
    kb: KnowledgeBase, notes: Path
) -> None:
    with pytest.raises(ZeroDivisionError), kb.files.change(tool="test") as change:
        change.rewrite(notes / "a.md", lambda _: b"sourdough")
        raise ZeroDivisionError
    assert [hit.file for hit in kb.search("sourdough").hits] == ["notes/a.md"]
    assert [steps(each) for each in changes(kb)] == [[("create", "a.md")]]


def test_each_call_is_a_change_of_its_session(kb: KnowledgeBase, notes: Path) -> None:
    writes.write(kb.files, notes / "a.md", b"1", tool="one")
    writes.write(kb.files, notes / "a.md", b"2", tool="two")
    with in_session("mine"):
        kb.notes.create("notes/a.md", "3")
        with in_session("x\n" + "y" * 200):
            kb.summary.update("4", str(notes / "a.md"))
    sessions = [each.session for each in changes(kb)]
    assert sessions[0] == sessions[1] != sessions[2]
    assert sessions[2:] == ["mine", "x?" + "y" * 98]
    assert [each.tool for each in changes(kb)] == ["one", "two", "create_note", "update_summary"]
    assert kb.revisions.history(notes / "a.md")[1].session == "mine"


def test_a_write_that_fails_is_not_recorded(
    kb: KnowledgeBase, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (notes / "a.md").write_bytes(b"a")
    for method in ("replace", "remove", "move"):
        monkeypatch.setattr(LockedFolder, method, full)
    files = kb.files
    calls: list[Callable[[], object]] = [
        lambda: writes.write(files, notes / "a.md", b"b", tool="test"),
        lambda: writes.delete(files, notes / "a.md", tool="test"),
        lambda: writes.move(files, notes / "a.md", notes / "b.md", tool="test"),
    ]
    for call in calls:
        with pytest.raises(OSError, match="No space left"):
            call()
    assert contents(notes) == {"a.md": b"a"}
    assert changes(kb) == []
    assert kb.revisions.history(notes / "a.md") == []


# --- consent -----------------------------------------------------------------------------


def test_a_person_agrees_to_each_deletion_and_move(tmp_path: Path, notes: Path) -> None:
    asked: list[Proposed] = []
    answers = iter([False, False, True, True])

    def confirm(proposed: Proposed) -> bool:
        asked.append(proposed)
        return next(answers)

    (notes / "a.md").write_bytes(b"a")
    settings = Settings(confirm_writes=confirm)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        with pytest.raises(WriteDeclinedError):
            writes.move(kb.files, notes / "a.md", notes / "b.md", tool="move_note")
        with pytest.raises(WriteDeclinedError):
            writes.delete(kb.files, notes / "a.md", tool="delete_note")
        for name in ("CLAUDE.md", ".git/config"):
            with pytest.raises(SteeringFileError):
                writes.move(kb.files, notes / "a.md", notes / name, tool="move_note")
        assert contents(notes) == {"a.md": b"a"}
        writes.move(kb.files, notes / "a.md", notes / "b.md", tool="move_note")
        writes.delete(kb.files, notes / "b.md", tool="delete_note")
    assert contents(notes) == {}
    move = ProposedMove("move_note", notes / "a.md", notes / "b.md")
    assert asked == [
        move,
        ProposedDeletion("delete_note", notes / "a.md", b"a"),
        move,
        ProposedDeletion("delete_note", notes / "b.md", b"a"),
    ]


def test_a_file_that_changes_while_the_person_thinks_is_not_deleted(
    tmp_path: Path, notes: Path
) -> None:
    def confirm(proposed: Proposed) -> bool:
        (notes / "a.md").write_bytes(b"edited")
        return True

    (notes / "a.md").write_bytes(b"a")
    settings = Settings(confirm_writes=confirm)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        with pytest.raises(FileChangedError, match="since the person was asked"):
            writes.delete(kb.files, notes / "a.md", tool="delete_note")
    assert contents(notes) == {"a.md": b"edited"}
