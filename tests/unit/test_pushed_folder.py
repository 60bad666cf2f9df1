"""What a server takes of a push, and what it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from qmd.errors import (
    ConflictError,
    DiskFullError,
    InputError,
    NoteAccessError,
    ScopeError,
    WritesForbiddenError,
)
from qmd.files import pushed
from qmd.files.writing.locked_folder import temporary_name
from qmd.kb import KnowledgeBase
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.server.page.site import Site
from qmd.settings import Settings
from qmd.transfer.push import FolderPush
from qmd.values import Collection
from qmd.values.transfer import Push, SentFile, SentPart
from tests.properties.test_push import Direct, tree


def sent(path: str, content: bytes, *, moved_from: str | None = None) -> SentFile:
    return SentFile(path, len(content), 1, hashlib.sha256(content).hexdigest(), moved_from)


def part(content: bytes, offset: int = 0, *, of: bytes | None = None) -> SentPart:
    return SentPart(hashlib.sha256(of or content).hexdigest(), offset, content)


def push(*files: SentFile, parts: tuple[SentPart, ...] = (), deleted: tuple[str, ...] = ()) -> Push:
    return Push("alice", "**/*.md", files, parts, deleted)


@pytest.fixture
def kb(tmp_path: Path):  # type: ignore[no-untyped-def]
    settings = Settings(push_folder=tmp_path / "pushed")
    with KnowledgeBase.open(tmp_path / "team.db", settings, create=True) as kb:
        yield kb


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x.md", "a/../b.md", "a//b.md", "./a.md", ".hidden/a.md", "a/.qmd-1.md",
     "a\\b.md", "a\nb.md", "a\0b.md", "x" * 256 + ".md", "a/" * 600 + "b.md", "\udc80.md"],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(
    kb: KnowledgeBase, tmp_path: Path, path: str
) -> None:
    report = kb.push("notes", push(sent(path, b"x"), parts=(part(b"x"),), deleted=(path,)))
    assert [each.path for each in report.refused] == [path]
    assert (report.stored, report.deleted) == (0, 0)
    moved = kb.push("notes", push(sent("ok.md", b"root"), deleted=()))
    assert len(moved.needed) == 1
    assert tree(tmp_path / "pushed" / "notes") == {}


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "-x", "x" * 101])
def test_a_name_that_is_none_is_refused(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(InputError):
        kb.push(name, push())


def test_a_hash_gives_nobody_the_content_of_another_collection(kb: KnowledgeBase) -> None:
    kb.push("alice", push(parts=(part(b"# Secret\n"),)))
    kb.push("alice", push(sent("secret.md", b"# Secret\n"), parts=(part(b"# Secret\n"),)))
    report = kb.push("bob", push(sent("mine.md", b"# Secret\n", moved_from="../alice/secret.md")))
    assert (report.stored, len(report.needed)) == (0, 1)


def test_content_comes_in_parts_and_goes_on_where_it_was(kb: KnowledgeBase) -> None:
    whole = b"# Long\n" + b"word " * 1000
    file = sent("long.md", whole)
    kb.push("notes", push(parts=(part(whole[:100], of=whole),)))
    [needed] = kb.push("notes", push(file)).needed
    assert (needed.sha256, needed.offset) == (file.sha256, 100)
    kb.push("notes", push(parts=(part(b"out of order", 4000, of=whole),)))
    assert kb.push("notes", push(file)).needed[0].offset == 100
    report = kb.push("notes", push(file, parts=(part(whole[100:], 100, of=whole),)))
    assert (report.stored, report.needed) == (1, ())
    assert kb.get("notes/long.md").text.startswith("# Long\nword ")


def test_wrong_content_is_thrown_away(kb: KnowledgeBase) -> None:
    file = sent("a.md", b"right")
    report = kb.push("notes", push(file, parts=(part(b"wrong", of=b"right"),)))
    assert (report.stored, report.needed[0].offset) == (0, 0)


def test_a_move_keeps_the_document_and_sends_nothing(kb: KnowledgeBase) -> None:
    kb.push("notes", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    before = kb.documents("notes")[0]
    report = kb.push("notes", push(sent("b/a.md", b"# A\n", moved_from="a.md"), deleted=("a.md",)))
    assert (report.stored, report.needed, report.deleted) == (1, (), 1)
    [after] = kb.documents("notes")
    assert (after.path, after.docid) == ("b/a.md", before.docid)


def test_tools_change_nothing_in_a_pushed_folder(kb: KnowledgeBase) -> None:
    kb.push("notes", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    with pytest.raises(NoteAccessError, match="of another machine"):
        kb.notes.create("notes/b.md", "# B\n")


def test_a_folder_of_the_server_is_not_replaced(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    kb.add_collection(tmp_path / "own", name="notes")
    with pytest.raises(ConflictError, match="of the server itself"):
        kb.push("notes", push())


def test_a_server_takes_pushes_only_if_it_was_told_where(tmp_path: Path) -> None:
    with (
        KnowledgeBase.open(tmp_path / "team.db", create=True) as kb,
        pytest.raises(WritesForbiddenError),
    ):
        kb.push("notes", push())


def test_an_empty_folder_deletes_nothing(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.push("notes", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    (tmp_path / "empty").mkdir()
    folder = Collection(
        0, "notes", str(tmp_path / "empty"), "**/*.md", (), 0, None, None, owner="alice"
    )
    with pytest.raises(InputError, match="has no files"):
        FolderPush(Direct(kb), folder).run()  # type: ignore[arg-type]
    assert len(kb.documents("notes")) == 1


def test_the_listing_comes_page_by_page(tmp_path: Path) -> None:
    folder = pushed.PushedFolder(tmp_path / "notes", tmp_path / "parts")
    folder.create()
    names = ["a-b.md", "a.md", "a/b.md", "a/c/d.md", "a/z.md", "b.md", "ab/c.md"]
    for name in names:
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_text(name)
    listed: list[str] = []
    for _ in range(20):
        page = folder.listing(listed[-1] if listed else "", limit=2)
        listed += [file.path for file in page.files]
        if not page.more:
            break
    assert listed == sorted(names, key=lambda name: name.split("/"))


def test_another_push_folder_is_not_taken_for_a_folder_of_the_server(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.push("alice", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    settings = Settings(push_folder=tmp_path / "elsewhere")
    with (
        KnowledgeBase.open(tmp_path / "team.db", settings) as moved,
        pytest.raises(ConflictError, match="in another directory") as caught,
    ):
        moved.pushed_files("alice")
    assert "--push-folder" in str(caught.value.hint)


def test_the_page_offers_no_change_of_a_pushed_note(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.push("alice", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    (tmp_path / "own").mkdir()
    kb.add_collection(tmp_path / "own")
    site = Site(kb)
    assert [site.may_write_in(name) for name in ("alice", "own", "nobody")] == [False, True, False]


def test_a_client_pushes_what_its_token_names_and_nothing_else(kb: KnowledgeBase) -> None:
    kb.push("alice", push(sent("a.md", b"# A\n"), parts=(part(b"# A\n"),)))
    token = kb.create_token("bea", push=["bea"])
    scope = kb.scope_of_token(token.token)
    assert scope is not None
    with ScopedKnowledgeBase(kb, scope) as bea:
        bea.push("bea", push(sent("b.md", b"# B\n"), parts=(part(b"# B\n"),)))
        assert [each.owner for each in bea.collections()] == ["bea"]
        assert not bea.policy.writable  # no tool that writes is offered
        assert [each.file for each in bea.documents()] == ["bea/b.md"]
        for name in ("alice", "nobody"):
            with pytest.raises(ScopeError):
                bea.push(name, push())
            with pytest.raises(ScopeError, match=f"may not push '{name}'") as caught:
                bea.pushed_files(name)
            assert str(caught.value.hint).startswith("It may push bea: add --name NAME.")
    assert len(kb.documents()) == 2
    assert [(each.actor, each.target) for each in kb.audit() if each.action == "push"] == [
        ("bea", "bea: 1 stored, 0 deleted"),
        ("", "alice: 1 stored, 0 deleted"),
    ]


@pytest.mark.skipif(os.name == "nt", reason="making links needs a right there")
def test_nothing_is_read_replaced_or_deleted_through_a_link(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "theirs.md").write_bytes(b"theirs")
    (outside / "deep" / "more.md").write_bytes(b"more")
    before = tree(outside)
    kb.push("notes", push(sent("sub/a.md", b"a"), parts=(part(b"a"),)))
    folder = tmp_path / "pushed" / "notes"
    (folder / "link").symlink_to(outside)
    (folder / "file.md").symlink_to(outside / "theirs.md")
    (folder / "sub" / "link").symlink_to(outside)
    paths = ["link", "file.md", "link/theirs.md", "link/new.md", "link/deep", "sub/link/x.md"]
    report = kb.push("notes", push(*(sent(path, b"x") for path in paths), parts=(part(b"x"),)))
    assert [each.path for each in report.refused] == paths
    gone = kb.push("notes", push(deleted=("link/theirs.md", "file.md", "link")))
    assert gone.deleted == 0
    moved = kb.push("notes", push(sent("new.md", b"theirs", moved_from="link/theirs.md")))
    assert len(moved.needed) == 1
    assert [each.path for each in kb.pushed_files("notes").files] == ["sub/a.md"]
    # A file takes the place of a folder that has a link in it.
    assert kb.push("notes", push(sent("sub", b"s"), parts=(part(b"s"),))).stored == 1
    assert tree(outside) == before


def test_parts_that_nobody_completes_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushed, "MAX_PARTS", 5)
    monkeypatch.setattr(pushed, "MAX_PARTS_BYTES", 40)
    folder = pushed.PushedFolder(tmp_path / "notes", tmp_path / "parts")
    folder.create()
    for number in range(9):
        folder.apply(push(parts=(part(b"x", of=b"%d" % number),)), "notes")
    assert len(list((tmp_path / "parts").iterdir())) == 5
    for number in range(9):
        folder.apply(push(parts=(part(b"x" * 15, of=b"long %d" % number),)), "notes")
    assert sum(each.stat().st_size for each in (tmp_path / "parts").iterdir()) <= 40


def test_a_push_leaves_room_on_the_disk(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.push("notes", push(sent("a.md", b"a"), parts=(part(b"a"),)))
    free = shutil.disk_usage(tmp_path).free
    monkeypatch.setattr(pushed, "FREE_SHARE", 1.0)
    monkeypatch.setattr(pushed, "FREE_BYTES", 2 * free)
    with pytest.raises(DiskFullError):
        kb.push("notes", push(parts=(part(b"b"),)))
    with pytest.raises(DiskFullError):
        kb.push("notes", push(sent("b.md", b"a", moved_from="a.md")))
    assert tree(tmp_path / "pushed" / "notes") == {"a.md": b"a"}


def test_a_path_comes_once_in_a_push(kb: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="twice"):
        kb.push("notes", push(sent("a.md", b"a"), sent("a.md", b"a")))
    with pytest.raises(InputError, match="twice"):
        files = [sent(path, b"a", moved_from="a.md") for path in ("b.md", "c.md")]
        kb.push("notes", push(*files))


def test_another_person_does_not_replace_a_folder(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.push("notes", push(sent("a.md", b"a"), parts=(part(b"a"),)))
    with pytest.raises(ConflictError, match="folder of alice") as caught:
        kb.push("notes", Push("bob", "**/*.md", deleted=("a.md",)))
    assert "--name" in caught.value.hint
    assert tree(tmp_path / "pushed" / "notes") == {"a.md": b"a"}


@pytest.mark.parametrize("pattern", ["", "a\0b", "*" * 5_000])
def test_a_mask_that_is_none_makes_no_collection(kb: KnowledgeBase, pattern: str) -> None:
    with pytest.raises(InputError):
        kb.push("notes", Push("alice", pattern))
    assert kb.collections() == []


@pytest.mark.parametrize("path", ["C:x.md", "a/b.md:s", "con.md", "a/NUL", "a /b.md", "x."])
def test_paths_that_windows_takes_for_others(path: str) -> None:
    assert pushed._is_special_on_windows(path)
    assert not pushed._is_special_on_windows("a/console.md")


@pytest.mark.skipif(sys.platform != "linux", reason="the longest path differs")
def test_a_path_too_long_for_the_disk_is_refused_alone(kb: KnowledgeBase) -> None:
    long = "/".join(["𠀀" * 60] * 16) + "/𠀀.md"  # 976 characters, but 3,860 bytes
    deep = "/".join(["a" * 200] * 4) + "/b.md"
    for _ in range(2):
        report = kb.push("n" * 100, push(sent(deep, b"b"), parts=(part(b"b"),), deleted=(long,)))
    assert (report.unchanged, report.deleted) == (1, 0)
    long = "/".join(["𠀀" * 62] * 15 + ["𠀀" * 50]) + ".md"
    report = kb.push("n" * 100, push(sent(long, b"b"), sent("c.md", b"b"), parts=(part(b"b"),)))
    assert report.stored + len(report.refused) == 2 and report.stored >= 1


def test_what_a_killed_server_had_begun_to_write_is_deleted_after_a_day(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.push("notes", push(sent("deep/ok.md", b"ok"), parts=(part(b"ok"),)))
    begun = tmp_path / "pushed/notes/deep" / temporary_name()
    begun.write_bytes(b"begun")
    os.utime(begun, (0, 0))  # the time of the file on the owner's machine
    assert [each.path for each in kb.pushed_files("notes").files] == ["deep/ok.md"]
    assert begun.exists()
    now = pushed.time.time()
    monkeypatch.setattr(pushed.time, "time", lambda: now + pushed.PART_LIFE_S + 60)
    assert [each.path for each in kb.pushed_files("notes").files] == ["deep/ok.md"]
    assert not begun.exists()
