"""kb.files: a file is replaced whole or not at all, and what it held is kept."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from qmd import Filters, KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    DatabaseBusyError,
    InputError,
    NotFoundError,
    OutsideRootsError,
    ReadOnlyError,
)
from qmd.files.revisions import FileHistory
from qmd.files.writing import locked_folder
from qmd.files.writing.writer import FileWriter, NewMetadata
from qmd.store import open_store
from qmd.store.sql.revisions import MAX_REVISION_BYTES
from qmd.store.sqlite.library import connect
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


def write(kb: KnowledgeBase, path: Path | str, text: str) -> Path:
    return writes.write(kb.files, path, text.encode(), tool="test").path


def kept(kb: KnowledgeBase, path: Path) -> list[bytes]:
    """The contents that the history holds, the oldest first."""
    return [
        kb.revisions.content(path, revision.number)
        for revision in reversed(kb.revisions.history(path))
        if revision.kind != "none"
    ]


def everything_below(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


# --- what is written -------------------------------------------------------------------


def test_a_new_file_has_the_bytes_and_the_directories_it_needs(
    kb: KnowledgeBase, notes: Path
) -> None:
    data = "# 数据库\r\n\r\nno newline at the end 🙂".encode()
    written = writes.write(kb.files, notes / "a/b/new.md", data, tool="test")
    path = notes / "a/b/new.md"
    assert (written.path, written.existed, written.bytes) == (path, False, len(data))
    assert written.path.read_bytes() == data
    assert everything_below(notes) == ["a", "a/b", "a/b/new.md"]
    assert kb.revisions.history(written.path) == []


def test_an_append_is_given_what_is_there(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "log.md"
    seen: list[bytes | None] = []

    def added(old: bytes | None) -> bytes:
        seen.append(old)
        return b"more\n"

    assert not writes.append(kb.files, path, added, tool="test").existed
    assert writes.append(kb.files, path, added, tool="test").existed
    assert seen == [None, b"more\n"]
    assert path.read_bytes() == b"more\nmore\n"
    assert kept(kb, path) == [b"more\n"]


def test_when_it_answers_the_index_holds_the_new_text(kb: KnowledgeBase, notes: Path) -> None:
    write(kb, notes / "plan.md", "# Plan\n\nsourdough 数据库\n")
    assert [hit.file for hit in kb.search("数据库").hits] == ["notes/plan.md"]
    write(kb, notes / "plan.md", "# Plan\n\nrye\n")
    assert kb.search("sourdough").hits == ()
    assert kb.get("notes/plan.md").text == "# Plan\n\nrye\n"


def test_what_the_rules_leave_out_is_written_and_not_indexed(
    kb: KnowledgeBase, notes: Path
) -> None:
    (notes / ".gitignore").write_text("drafts/\n")
    for name in ("data.txt", "drafts/x.md"):
        assert writes.write(kb.files, notes / name, b"sourdough", tool="test").problem is None
    assert kb.status().total_documents == 0
    assert (notes / "drafts/x.md").read_bytes() == b"sourdough"


def test_a_file_in_two_collections_is_right_in_both(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "inner").mkdir()
    kb.add_collection(notes / "inner", name="inner")
    write(kb, notes / "inner/x.md", "sourdough")
    assert [hit.file for hit in kb.search("sourdough").hits] == ["inner/x.md"]
    outer = kb.search("sourdough", filters=Filters(collections=("notes",)))
    assert [hit.file for hit in outer.hits] == ["notes/inner/x.md"]


def test_subscribers_hear_of_it(kb: KnowledgeBase, notes: Path) -> None:
    heard: list[tuple[str, str | None]] = []
    kb.events.subscribe(lambda event: heard.append((event.kind, event.file)))
    write(kb, notes / "x.md", "one")
    write(kb, notes / "x.md", "two")
    assert heard == [("added", "notes/x.md"), ("updated", "notes/x.md")]


def test_where_the_index_cannot_follow_the_answer_says_so(kb: KnowledgeBase, notes: Path) -> None:
    """An error would only make the client write once more."""

    def indexed(paths: Sequence[Path]) -> None:
        raise DatabaseBusyError("busy", hint="wait")

    files = FileWriter(kb._store, kb.policy, indexed)
    written = writes.write(files, notes / "x.md", b"two", tool="test")
    assert written.problem == "busy wait"
    assert (notes / "x.md").read_bytes() == b"two"


# --- mode, owner, links ------------------------------------------------------------------


@posix
def test_mode_and_owner_stay(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    path.write_text("old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    write(kb, path, "new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino  # it was replaced, not written into


@posix
def test_a_new_file_has_the_mode_of_the_umask(kb: KnowledgeBase, notes: Path) -> None:
    before = os.umask(0o027)
    try:
        write(kb, notes / "folder/x.md", "new")
    finally:
        os.umask(before)
    assert (notes / "folder/x.md").stat().st_mode & 0o777 == 0o640
    assert (notes / "folder").stat().st_mode & 0o777 == 0o750


@pytest.mark.skipif(sys.platform != "linux", reason="Python reads these on Linux alone")
def test_extended_attributes_stay(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    path.write_text("old")
    try:
        os.setxattr(path, "user.tag", b"\x00blue")
    except OSError:
        pytest.skip("this file system has none")
    write(kb, path, "new")
    assert os.getxattr(path, "user.tag") == b"\x00blue"


@posix
def test_what_a_link_leads_to_is_written_and_the_link_stays(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "real.md").write_text("old")
    (notes / "link.md").symlink_to("real.md")
    (notes / "broken.md").symlink_to("later.md")
    assert write(kb, notes / "link.md", "new") == notes / "real.md"
    assert write(kb, notes / "broken.md", "first") == notes / "later.md"
    assert (notes / "link.md").is_symlink()
    assert (notes / "real.md").read_text() == "new"
    assert (notes / "broken.md").read_text() == "first"


@posix
def test_the_other_name_of_a_hard_link_keeps_the_old_content(
    tmp_path: Path, kb: KnowledgeBase, notes: Path
) -> None:
    other = tmp_path / "elsewhere.md"
    other.write_text("old")
    os.link(other, notes / "x.md")
    write(kb, notes / "x.md", "new")
    assert other.read_text() == "old"


# --- what may not be written ---------------------------------------------------------------


@posix
def test_a_read_only_file_stays_also_for_the_superuser(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    path.write_text("old")
    path.chmod(0o444)
    for change in (
        lambda: writes.write(kb.files, path, b"new", tool="test"),
        lambda: writes.append(kb.files, path, lambda old: b"new", tool="test"),
    ):
        with pytest.raises(PermissionError) as caught:
            change()
        assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert everything_below(notes) == ["x.md"]


@posix
def test_what_is_no_regular_file_stays(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "folder.md").mkdir()
    os.mkfifo(notes / "pipe.md")
    (notes / "file.md").write_text("x")
    (notes / "loop.md").symlink_to("loop.md")
    for name, number in (
        ("folder.md", errno.EISDIR),
        ("pipe.md", errno.EINVAL),
        ("file.md/x.md", errno.ENOTDIR),
        ("loop.md", errno.ELOOP),
        ("n" * 300 + ".md", errno.ENAMETOOLONG),
        ("a/" * 3000 + "x.md", errno.ENAMETOOLONG),
        ("new/folder/" + "n" * 300 + ".md", errno.ENAMETOOLONG),
    ):
        with pytest.raises(OSError) as caught:
            write(kb, notes / name, "new")
        assert caught.value.errno == number, name
    assert everything_below(notes) == ["file.md", "folder.md", "loop.md", "pipe.md"]


def test_directories_made_for_a_write_that_fails_are_removed(
    kb: KnowledgeBase, notes: Path
) -> None:
    def fails(old: bytes | None) -> bytes:
        raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        writes.append(kb.files, notes / "a/b/x.md", fails, tool="test")
    assert everything_below(notes) == []


def test_outside_the_roots_nothing_is_written(tmp_path: Path, notes: Path) -> None:
    (notes / "out").symlink_to(tmp_path)
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(write_roots=[notes]), create=True
    ) as kb:
        for path in (tmp_path / "x.md", notes / "../x.md", notes / "out/x.md", notes):
            with pytest.raises(OutsideRootsError) as caught:
                write(kb, path, "new")
            assert "--write-root" in (caught.value.hint or "")
        assert not (tmp_path / "x.md").exists()


def test_switched_off_nothing_is_written(tmp_path: Path, notes: Path) -> None:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(read_only_files=True), create=True
    ) as kb:
        with pytest.raises(OutsideRootsError) as caught:
            write(kb, notes / "x.md", "new")
        assert "--read-only" in (caught.value.hint or "")
    assert everything_below(notes) == []


@posix
def test_a_directory_swapped_for_a_link_after_the_check_leads_nowhere(
    tmp_path: Path, kb: KnowledgeBase, notes: Path
) -> None:
    """The policy has judged the path; then somebody puts a link in its way."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.md").write_text("old")
    (notes / "folder").mkdir()
    place = kb.files.policy.resolve(notes / "folder/x.md")
    (notes / "folder").rmdir()
    (notes / "folder").symlink_to(secret)
    with pytest.raises(OSError) as caught, locked_folder.locked(place.target.parent, create=True):
        raise AssertionError("it was entered")
    assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)


@posix
def test_a_directory_swapped_during_the_write_does_not_lead_out(
    tmp_path: Path, kb: KnowledgeBase, notes: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.md").write_text("old")
    (notes / "folder").mkdir()
    (notes / "folder/x.md").write_text("mine\n")

    def added(old: bytes | None) -> bytes:
        (notes / "folder").rename(notes / "was folder")
        (notes / "folder").symlink_to(secret)
        return b"more\n"

    writes.append(kb.files, notes / "folder/x.md", added, tool="test")
    assert everything_below(secret) == ["x.md"]
    assert (secret / "x.md").read_text() == "old"
    assert (notes / "was folder/x.md").read_text() == "mine\nmore\n"


# --- what is kept -------------------------------------------------------------------------


def test_each_replaced_content_is_kept_once(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    for text in ("a", "b", "b", "c"):
        write(kb, path, text)
    writes.append(kb.files, path, lambda old: b"d", tool="other")
    assert kept(kb, path) == [b"a", b"b", b"c"]
    history = kb.revisions.history(path)
    assert [revision.tool for revision in history] == ["other", "test", "test"]


def test_at_most_twenty_revisions_of_a_file_are_kept(kb: KnowledgeBase, notes: Path) -> None:
    for number in range(25):
        write(kb, notes / "x.md", f"{number}")
    write(kb, notes / "other.md", "1")
    write(kb, notes / "other.md", "2")
    assert kept(kb, notes / "x.md") == [b"%d" % number for number in range(4, 24)]
    assert kept(kb, notes / "other.md") == [b"1"]


def limit_revisions(monkeypatch: pytest.MonkeyPatch, limit_bytes: int) -> None:
    monkeypatch.setattr("qmd.store.sql.revisions.MAX_REVISION_BYTES", limit_bytes)


def test_at_most_ten_mebibytes_of_a_file_are_kept(
    kb: KnowledgeBase, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_revisions(monkeypatch, 100)
    path = notes / "x.md"
    for letter in "abcd":
        write(kb, path, letter * 40)
    assert kept(kb, path) == [b"b" * 40, b"c" * 40]


def test_a_long_content_is_kept_compressed(
    kb: KnowledgeBase, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_revisions(monkeypatch, 100)
    path = notes / "x.md"
    write(kb, path, "a" * 40)
    write(kb, path, "x" * 500)
    write(kb, path, "new")
    assert kept(kb, path) == [b"a" * 40, b"x" * 500]
    assert [revision.bytes for revision in kb.revisions.history(path)] == [500, 40]
    kb.revisions.restore(path)
    assert path.read_text() == "x" * 500


def test_a_content_too_long_to_be_kept_is_not_replaced(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    content = os.urandom(MAX_REVISION_BYTES + 1)
    path.write_bytes(content)
    with pytest.raises(ConflictError) as caught:
        write(kb, path, "new")
    assert caught.value.hint
    assert path.read_bytes() == content
    writes.append(kb.files, path, lambda old: b"more", tool="test")  # takes nothing away
    assert path.read_bytes() == content + b"more"
    assert kept(kb, path) == []


def test_a_content_that_cannot_be_kept_is_not_replaced(tmp_path: Path, notes: Path) -> None:
    database = tmp_path / "kb.sqlite"
    path = notes / "x.md"
    path.write_text("old")
    KnowledgeBase.open(database, create=True).close()
    with KnowledgeBase(open_store(database, timeout_s=0.05)) as kb:
        other = connect(database, read_only=False)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusyError):
            write(kb, path, "new")
        other.execute("ROLLBACK")
        other.close()
    with (
        KnowledgeBase.open(database, read_only=True) as kb,
        pytest.raises(ReadOnlyError),
    ):
        write(kb, path, "new")
    assert path.read_text() == "old"
    assert everything_below(notes) == ["x.md"]


def test_what_an_editor_saved_in_the_last_moment_is_not_lost(
    kb: KnowledgeBase, notes: Path
) -> None:
    path = notes / "x.md"
    path.write_text("old")
    saved: list[bytes | None] = []

    def added(old: bytes | None) -> bytes:
        if not saved:
            path.write_text("by the editor")
        saved.append(old)
        return b" and the tool"

    writes.append(kb.files, path, added, tool="test")
    assert saved == [b"old", b"by the editor"]
    assert path.read_text() == "by the editor and the tool"
    assert b"by the editor" in kept(kb, path)
    assert everything_below(notes) == ["x.md"]


# --- restore ------------------------------------------------------------------------------


def test_restoring_twice_undoes_it(kb: KnowledgeBase, notes: Path) -> None:
    path = write(kb, notes / "x.md", "one")
    write(kb, path, "two")
    assert kb.revisions.restore("notes/x.md").path == path
    assert path.read_text() == "one"
    assert kb.get("notes/x.md").text == "one"
    kb.revisions.restore("qmd://notes/x.md")
    assert path.read_text() == "two"


@posix
def test_a_restore_writes_the_file_that_had_the_history(
    tmp_path: Path, kb: KnowledgeBase, notes: Path
) -> None:
    """And not what a link leads to that is put in its way; that is below a write root as well."""
    path = write(kb, notes / "folder/x.md", "one")
    write(kb, path, "two")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x.md").write_text("theirs")

    def files_meant(given: str) -> list[Path]:
        (notes / "folder").rename(notes / "moved")
        (notes / "folder").symlink_to(tmp_path / "elsewhere")
        return [path]

    with pytest.raises(OSError):
        FileHistory(kb.files, files_meant).restore(path)
    assert (tmp_path / "elsewhere/x.md").read_text() == "theirs"
    assert everything_below(tmp_path / "elsewhere") == ["x.md"]


def test_a_file_that_was_deleted_comes_back(kb: KnowledgeBase, notes: Path) -> None:
    path = write(kb, notes / "a/x.md", "one")
    write(kb, path, "two")
    path.unlink()
    path.parent.rmdir()
    kb.revisions.restore(path)
    assert path.read_text() == "one"


def test_of_a_file_that_is_gone_what_an_undo_left_comes_back(
    kb: KnowledgeBase, notes: Path
) -> None:
    path = write(kb, notes / "x.md", "one")
    write(kb, path, "two")
    kb.undo.undo_last()
    assert path.read_text() == "one"
    path.unlink()
    kb.revisions.restore(path)
    assert path.read_text() == "one"


def test_a_revision_is_chosen_by_its_number(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    for text in ("one", "two", "three"):
        write(kb, path, text)
    oldest = kb.revisions.history(path)[-1]
    assert kb.revisions.restore(path, oldest.number).revision == oldest
    assert path.read_text() == "one"
    with pytest.raises(NotFoundError) as caught:
        kb.revisions.restore(path, 999)
    assert str(oldest.number) in (caught.value.hint or "")
    write(kb, notes / "other.md", "x")
    with pytest.raises(NotFoundError, match="No earlier content"):
        kb.revisions.restore(notes / "other.md")
    with pytest.raises(NotFoundError):  # the number of another file's revision
        kb.revisions.restore(notes / "other.md", oldest.number)


def test_without_a_history_there_is_nothing_to_restore(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "x.md").write_text("by hand")
    for path in (notes / "x.md", "notes/x.md", "notes/none.md", "/nowhere/x.md"):
        assert kb.revisions.history(path) == []
        with pytest.raises(NotFoundError):
            kb.revisions.restore(path)


def test_the_history_of_a_name_that_no_file_has(kb: KnowledgeBase) -> None:
    for path in ("a\0b.md", "a\udcff.md", "\ud800.md", "qmd://notes/a%00b.md"):
        with pytest.raises(InputError) as caught:
            kb.revisions.history(path)
        str(caught.value).encode()
    with pytest.raises(NotFoundError):
        kb.revisions.history("qmd://nowhere/x.md")


# --- what is written -------------------------------------------------------------------------


def test_of_a_photo_only_the_metadata_is_kept(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "photo.jpg"
    path.write_bytes(b"old")
    path.chmod(0o640)
    new = NewMetadata(b"new", b'{"tags": []}', {}, {})
    assert kb.files.rewrite(path, lambda _: new, tool="images").bytes == 3
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert everything_below(notes) == ["photo.jpg"]
    assert [revision.kind for revision in kb.revisions.history(path)] == ["metadata"]
    with pytest.raises(ConflictError):  # it is not the photo
        kb.revisions.restore(path)
    assert path.read_bytes() == b"new"


def test_the_present_content_is_not_written_again(kb: KnowledgeBase, notes: Path) -> None:
    path = write(kb, notes / "x.md", "same")
    before = path.stat()
    written = writes.write(kb.files, path, b"same")
    assert (written.existed, written.bytes, written.change) == (True, 4, None)
    assert path.stat() == before
    assert [revision.action for revision in kb.revisions.history(path)] == []
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        writes.write(kb.files, path, b"same")


@posix
def test_each_state_of_a_file_is_later_than_the_one_before(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    times = [write(kb, path, f"{number}").stat().st_mtime_ns for number in range(10)]
    assert sorted(set(times)) == times
    future = times[-1] + 10**15  # somebody's clock was wrong
    os.utime(path, ns=(future, future))
    assert write(kb, path, "more").stat().st_mtime_ns > future
