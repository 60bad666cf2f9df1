"""What a note's path means, and what is read, written and listed there."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import child

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    FolderNotFoundError,
    InvalidPathError,
    NoteAccessError,
    NoteNotFoundError,
    QmdError,
)
from qmd.files import vault as vault_module
from qmd.files.notes import MAX_BYTES, Notes
from qmd.files.vault import Vault, note_path
from qmd.files.writing.writer import FileWriter
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.operations import notes as notes_texts
from qmd.values.access import AccessScope
from qmd.values.writing import Mode

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX names, links or permissions")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    directory = tmp_path / "vault"
    directory.mkdir()
    return directory


@pytest.fixture
def kb(tmp_path: Path, vault: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(
        tmp_path / "vault.sqlite", Settings(vault=vault), create=True
    ) as opened:
        yield opened


@pytest.fixture
def many(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Two collections and no vault: ``work``, which takes text files too, and ``home``."""
    for file in ("work/2025/plan.md", "work/log.txt", "home/plan.md", "home/recipes/bread.md"):
        put(tmp_path / file, f"text of {file}, a zebra\n")
    with KnowledgeBase.open(tmp_path / "many.sqlite", create=True) as opened:
        opened.add_collection(tmp_path / "work", mask="**/*.{md,txt}")
        opened.add_collection(tmp_path / "home")
        opened.index()
        yield opened


def put(path: Path, content: str | bytes = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(kind: type[QmdError], call: object, *args: object, **options: object) -> str:
    assert callable(call)
    with pytest.raises(kind) as caught:
        call(*args, **options)
    return str(caught.value)


# --- paths ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("plan", "plan.md"),
        ("a.txt", "a.txt.md"),
        ("note.", "note..md"),
        ("Plan.MD", "Plan.MD"),
        ("  Daily/2025-01-15\t", "Daily/2025-01-15.md"),
        ("/plan.md", "plan.md"),
        ("a..b", "a..b.md"),
        ("...", "....md"),
        ("中文 笔记", "中文 笔记.md"),
    ],
)
def test_a_path_is_trimmed_loses_one_slash_and_gets_its_suffix(given: str, path: str) -> None:
    assert note_path(given) == path


@pytest.mark.parametrize("path", ["", "   ", "\n", "/", " / ", "　"])
def test_a_blank_path_cannot_be_read_or_created(kb: KnowledgeBase, path: str) -> None:
    assert refusal(InvalidPathError, kb.notes.read, path) == "Path cannot be empty"
    assert refusal(InvalidPathError, kb.notes.create, path, "x") == "Path cannot be empty"


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../b", "a/..", "/../x", "//etc/passwd", "a\0b", "../vault/a"]
)
def test_a_path_that_leads_out_is_invalid_for_every_tool(
    kb: KnowledgeBase, vault: Path, path: str
) -> None:
    put(vault / "a.md")
    for call in (kb.notes.read, kb.notes.list_folder):
        assert refusal(InvalidPathError, call, path).startswith("Invalid path: ")
    message = refusal(InvalidPathError, kb.notes.create, path, "x")
    assert message.startswith("Invalid path: ")
    assert [each.name for each in vault.iterdir()] == ["a.md"]


def test_a_new_note_needs_a_name(kb: KnowledgeBase, vault: Path) -> None:
    message = refusal(InvalidPathError, kb.notes.create, "folder/", "x")
    assert message == "Invalid path: folder/ names a folder, and a note needs a name"
    assert list(vault.iterdir()) == []


@posix
def test_what_only_a_new_note_may_not_be_called_can_be_read(kb: KnowledgeBase, vault: Path) -> None:
    put(vault / "Q: why?.md", "because")
    assert kb.notes.read("Q: why?").text == "because"
    message = refusal(InvalidPathError, kb.notes.create, "Q: why?", "x")
    assert message == 'Invalid path: contains illegal characters (<>:"|?*)'
    assert refusal(NoteNotFoundError, kb.notes.read, "Q: how?") == "File not found: Q: how?.md"
    assert refusal(FolderNotFoundError, kb.notes.list_folder, "a:b") == "Folder not found: a:b"


# --- links ---------------------------------------------------------------------------


@posix
def test_links_that_lead_out_of_the_vault_are_refused(
    kb: KnowledgeBase, vault: Path, tmp_path: Path
) -> None:
    secret = put(tmp_path / "outside/secret.md", "secret")
    (vault / "file.md").symlink_to(secret)
    (vault / "folder").symlink_to(secret.parent)
    (vault / "new.md").symlink_to(secret.parent / "new.md")
    for path in ("file", "folder/secret"):
        message = refusal(InvalidPathError, kb.notes.read, path)
        assert message == f"Invalid path: {path}.md leads out of the vault"
    message = refusal(InvalidPathError, kb.notes.list_folder, "folder")
    assert message == "Invalid path: folder leads out of the vault"
    for path in ("file", "folder/secret", "folder/more", "new"):
        assert "leads out" in refusal(InvalidPathError, kb.notes.create, path, "x")
    assert [each.name for each in secret.parent.iterdir()] == ["secret.md"]
    assert secret.read_text() == "secret"
    # Such a name is no folder to point to, and no note that could be meant.
    assert refusal(NoteNotFoundError, kb.notes.read, "folder") == "File not found: folder.md"
    assert refusal(NoteNotFoundError, kb.notes.read, "secret") == "File not found: secret.md"


@posix
@pytest.mark.parametrize("replaced", ["folder", "folder/note.md"])
def test_a_link_that_appears_after_the_path_was_judged_is_not_followed(
    vault: Path, tmp_path: Path, replaced: str
) -> None:
    put(tmp_path / "outside/note.md", "secret")
    put(tmp_path / "outside/folder/note.md", "secret")
    put(vault / "folder/note.md", "text")
    place = Vault.of_directory(vault).locate("folder/note.md")
    with os.fdopen(place.open(os.O_RDONLY), "rb") as file:
        assert file.read() == b"text"
    (vault / replaced).rename(vault / "moved")
    (vault / replaced).symlink_to(tmp_path / "outside" / replaced)
    with pytest.raises(OSError):
        place.open(os.O_RDONLY)


@posix
@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("replaced", ["folder", "folder/sub"])
def test_a_write_stays_in_the_vault_when_a_link_appears_after_the_check(
    kb: KnowledgeBase, vault: Path, tmp_path: Path, replaced: str, mode: Mode
) -> None:
    """The usual write roots include the whole temporary directory, and so what is outside."""
    put(tmp_path / "outside/sub/note.md", "theirs")
    put(tmp_path / "outside/note.md", "theirs")
    put(vault / "folder/sub/note.md", "ours")

    def files() -> FileWriter:  # it is asked for once the path has been checked
        (vault / replaced).rename(vault / "moved")
        (vault / replaced).symlink_to(tmp_path / "outside")
        return kb.files

    notes = Notes(lambda: Vault.of_directory(vault), files)
    with pytest.raises(NoteAccessError):
        notes.create("folder/sub/note", "new", mode=mode)
    outside = sorted((tmp_path / "outside").rglob("*.md"))
    assert [each.read_text() for each in outside] == ["theirs", "theirs"]
    assert {each.name for each in (tmp_path / "outside").iterdir()} == {"note.md", "sub"}


@posix
def test_the_notes_of_a_folder_that_became_a_link_are_not_suggested(
    vault: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside/secret plan.md", "secret")
    put(vault / "folder/note.md", "text")
    notes = Vault.of_directory(vault).notes
    assert notes() == ["folder/note.md"]
    (vault / "folder").rename(vault / ".moved")
    (vault / "folder").symlink_to(tmp_path / "outside")
    assert notes() == []


@posix
def test_links_within_the_vault_are_followed(kb: KnowledgeBase, vault: Path) -> None:
    put(vault / "real/note.md", "old")
    (vault / "alias.md").symlink_to("real/note.md")
    (vault / "shelf").symlink_to("real")
    assert kb.notes.read("alias").text == kb.notes.read("shelf/note").text == "old"
    assert kb.notes.create("alias", "new").action == "overwritten"
    assert (vault / "real/note.md").read_text() == "new"
    assert (vault / "alias.md").is_symlink()
    assert notes_texts.listing(kb.notes.list_folder("shelf")) == "📄 note.md"
    assert notes_texts.listing(kb.notes.list_folder("")) == "📁 real\n📁 shelf\n📄 alias.md"


@posix
def test_the_vault_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real/a.md", "a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    database = tmp_path / "x.sqlite"
    with KnowledgeBase.open(database, Settings(vault=tmp_path / "link"), create=True) as kb:
        assert kb.notes.read("a").text == "a"
        kb.notes.create("b", "b")
        assert notes_texts.listing(kb.notes.list_folder("/")) == "📄 a.md\n📄 b.md"


# --- reading -------------------------------------------------------------------------


def test_the_disk_is_the_truth(many: KnowledgeBase, tmp_path: Path) -> None:
    put(tmp_path / "home/plan.md", "changed behind the index's back")
    assert many.notes.read("home/plan").text == "changed behind the index's back"


@pytest.mark.parametrize("encoding", ["utf-16", "gb18030", "utf-8-sig", "utf-32"])
def test_other_encodings_are_decoded(kb: KnowledgeBase, vault: Path, encoding: str) -> None:
    text = "备份数据库是一件很重要的事情，我们每天都会做。\r\n"
    put(vault / "note.md", text.encode(encoding))
    assert kb.notes.read("note").text.removeprefix("\ufeff") == text


def test_what_is_no_text_is_not_read_and_not_appended_to(kb: KnowledgeBase, vault: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff"
    put(vault / "picture.md", picture)
    message = refusal(NoteAccessError, kb.notes.read, "picture")
    assert message == "Failed to read file: The file is a PNG image, not text."
    message = refusal(NoteAccessError, kb.notes.create, "picture", "x", mode="append")
    assert message == "Failed to write file: The file is a PNG image, not text."
    assert (vault / "picture.md").read_bytes() == picture


def test_of_a_document_that_is_no_text_it_is_said_what_shows_its_text(
    kb: KnowledgeBase, vault: Path
) -> None:
    put(vault / "lease.pdf", b"%PDF-1.4\n\xff\0")
    with pytest.raises(NoteAccessError) as caught:
        kb.notes.read("lease.pdf")
    assert str(caught.value) == "Failed to read file: The file is a PDF file, not text."
    assert caught.value.hint == "The tool get shows its text; in the shell 'qmd get' does."


def test_a_folder_is_no_file_and_a_file_no_folder(kb: KnowledgeBase, vault: Path) -> None:
    (vault / "folder.md").mkdir()
    put(vault / "note.md")
    message = "Path is not a file: folder.md"
    assert refusal(InvalidPathError, kb.notes.read, "folder") == message
    assert refusal(InvalidPathError, kb.notes.create, "folder", "x") == message
    message = "Path is not a folder: note.md"
    assert refusal(InvalidPathError, kb.notes.list_folder, "/note.md/") == message
    message = refusal(FolderNotFoundError, kb.notes.list_folder, "note.md/x")
    assert message == "Folder not found: note.md/x"


@posix
def test_a_pipe_is_no_file_and_holds_up_nobody(kb: KnowledgeBase, vault: Path) -> None:
    os.mkfifo(vault / "pipe.md")
    assert refusal(InvalidPathError, kb.notes.read, "pipe") == "Path is not a file: pipe.md"
    message = refusal(InvalidPathError, kb.notes.create, "pipe", "x", mode="append")
    assert message == "Path is not a file: pipe.md"


def test_a_file_too_large_for_a_note_is_not_read(kb: KnowledgeBase, vault: Path) -> None:
    with (vault / "huge.md").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    message = refusal(NoteAccessError, kb.notes.read, "huge")
    assert message == "Failed to read file: huge.md has 67,108,865 bytes, more than 67,108,864."


@posix
def test_a_name_that_no_utf8_can_hold_is_listed_and_not_found(
    kb: KnowledgeBase, vault: Path
) -> None:
    try:
        (vault / os.fsdecode(b"\xff.md")).touch()
    except OSError:
        pytest.skip("the file system takes UTF-8 names alone")
    assert notes_texts.listing(kb.notes.list_folder("")) == "📄 \\udcff.md"
    assert refusal(NoteNotFoundError, kb.notes.read, "\udcff") == "File not found: \\udcff.md"
    message = refusal(InvalidPathError, kb.notes.create, "\udcff", "x")
    assert message.startswith("Invalid path: ")
    assert refusal(FolderNotFoundError, kb.notes.list_folder, "\ud800") == (
        "Folder not found: \\ud800"
    )


# --- another note than the one named --------------------------------------------------


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("daily/monday", "Daily/Monday.md"),
        ("MONDAY", "Daily/Monday.md"),
        ("Cafe\u0301", "Café.md"),
        ("zh/笔记", "deep/zh/笔记.md"),
        ("archive", "Archive.md"),
        ("picture.txt", "picture.txt"),
    ],
)
def test_the_only_note_that_can_be_meant_is_read(
    kb: KnowledgeBase, vault: Path, named: str, meant: str
) -> None:
    for file in ("Daily/Monday.md", "Café.md", "deep/zh/笔记.md", "picture.txt"):
        put(vault / file, file)
    for file in ("Archive.md", "old/archive.md"):  # the whole path comes before the end of one
        put(vault / file, file)
    note = kb.notes.read(named)
    assert (note.path, note.text, note.requested) == (meant, meant, note_path(named))


def test_a_vault_that_is_a_file_is_no_folder(kb: KnowledgeBase, vault: Path) -> None:
    vault.rmdir()
    vault.write_bytes(b"")
    with pytest.raises(InvalidPathError, match=r"^Path is not a folder: /$"):
        kb.notes.list_folder("")


def test_the_exact_note_comes_first(kb: KnowledgeBase, vault: Path) -> None:
    for file in ("a.txt", "a.txt.md", "deep/a.txt.md", "deep/b.md", "b.md"):
        put(vault / file, file)
    assert kb.notes.read("a.txt").text == "a.txt.md"
    assert kb.notes.read("b").text == "b.md"


@pytest.mark.parametrize("secret", [".env", ".git/config", "sub/.netrc"])
def test_a_hidden_file_is_not_read_for_a_note_that_is_not_there(
    kb: KnowledgeBase, vault: Path, secret: str
) -> None:
    put(vault / secret, "password")
    with pytest.raises(NoteNotFoundError) as caught:
        kb.notes.read(secret)
    assert str(caught.value) == f"File not found: {secret}.md"
    put(vault / f"{secret}.md", "a note")
    assert kb.notes.read(secret).text == "a note"


def test_a_file_that_others_keep_changing_is_to_be_tried_again(
    kb: KnowledgeBase, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(vault / "a.md", "old")

    def busy(*paths: object, **where: object) -> None:
        raise OSError(errno.EBUSY, "The file is being changed")

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(NoteAccessError) as caught:
        kb.notes.create("a", "new")
    assert str(caught.value) == "Failed to write file: The file is being changed: a.md"
    assert caught.value.hint == "Try again in a moment."
    assert (vault / "a.md").read_text() == "old"


def test_several_notes_that_may_be_meant_are_suggestions(kb: KnowledgeBase, vault: Path) -> None:
    for file in ("a/plan.md", "b/Plan.md", "c/planet.md", "d/my plan.md"):
        put(vault / file, file)
    with pytest.raises(NoteNotFoundError) as caught:
        kb.notes.read("plan")
    assert str(caught.value) == "File not found: plan.md"
    assert caught.value.suggestions == ("a/plan.md", "b/Plan.md")


@pytest.mark.parametrize("named", ["plam", "pla", "plan2", "x/plan", "lan", "plan.md.md"])
def test_likeness_alone_never_answers(kb: KnowledgeBase, vault: Path, named: str) -> None:
    put(vault / "a/plan.md")
    put(vault / ".trash/plam.md")
    with pytest.raises(NoteNotFoundError) as caught:
        kb.notes.read(named)
    assert set(caught.value.suggestions) <= {"a/plan.md"}


def test_a_name_unlike_all_others_brings_no_suggestion(kb: KnowledgeBase, vault: Path) -> None:
    put(vault / "notes/plan.md")
    for name in ("xyz", "notes/nope.md"):
        with pytest.raises(NoteNotFoundError) as caught:
            kb.notes.read(name)
        assert (caught.value.suggestions, caught.value.hint) == ((), None)


def test_a_vault_that_is_not_there_is_named(kb: KnowledgeBase, vault: Path) -> None:
    vault.rename(vault.with_name("moved"))
    assert refusal(FolderNotFoundError, kb.notes.list_folder) == f"Folder not found: {vault}"


def test_a_folder_in_the_place_of_a_note_is_named(kb: KnowledgeBase, vault: Path) -> None:
    put(vault / "Projects/boat.md")
    with pytest.raises(NoteNotFoundError) as caught:
        kb.notes.read("Projects")
    assert caught.value.hint == "Projects is a folder; list it to see the notes in it."


def test_in_a_vault_too_large_to_look_through_only_exact_paths_are_found(
    kb: KnowledgeBase, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(vault / f"deep/{number}.md")
    assert kb.notes.read("3").path == "deep/3.md"
    monkeypatch.setattr(vault_module, "_MOST_ENTRIES", 4)
    assert refusal(NoteNotFoundError, kb.notes.read, "3") == "File not found: 3.md"
    assert kb.notes.read("deep/3").path == "deep/3.md"


# --- writing -------------------------------------------------------------------------


def test_the_message_says_what_was_done(kb: KnowledgeBase, vault: Path) -> None:
    assert notes_texts.written(kb.notes.create("log", "1", mode="append")) == "File created: log.md"
    assert (
        notes_texts.written(kb.notes.create("/log", "2", mode="append"))
        == "Content appended to: log.md"
    )
    assert notes_texts.written(kb.notes.create("log.md", "3")) == "File overwritten: log.md"
    assert notes_texts.written(kb.notes.create("new/log", "4")) == "File created: new/log.md"
    assert (vault / "log.md").read_bytes() == b"3"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "gb18030", "big5", "utf-8-sig"])
def test_text_behind_a_note_is_in_the_notes_encoding(
    kb: KnowledgeBase, vault: Path, encoding: str
) -> None:
    initial = "備份數據庫是一件很重要的事情，我們每天都會做。\n" * 3
    bom = b"\xfe\xff" if encoding == "utf-16-be" else b""
    put(vault / "note.md", bom + initial.encode(encoding))
    before = kb.notes.read("note").text
    kb.notes.create("note", "也是文字", mode="append")
    assert kb.notes.read("note").text == before + "也是文字"


def test_text_that_the_notes_encoding_lacks_is_not_appended(kb: KnowledgeBase, vault: Path) -> None:
    initial = ("備份數據庫是一件很重要的事情，我們每天都會做。\n" * 3).encode("big5")
    put(vault / "note.md", initial)
    message = refusal(NoteAccessError, kb.notes.create, "note", "🙂", mode="append")
    assert message.startswith("Failed to write file: note.md is in big5")
    assert (vault / "note.md").read_bytes() == initial


def test_half_a_character_is_not_written(kb: KnowledgeBase, vault: Path) -> None:
    for mode in ("overwrite", "append"):
        message = refusal(NoteAccessError, kb.notes.create, "a", "x\ud800", mode=mode)
        assert message.startswith("Failed to write file: the content holds '\\ud800'")
    assert list(vault.iterdir()) == []


def test_bytes_are_written_as_they_are(kb: KnowledgeBase, vault: Path) -> None:
    kb.notes.create("a", b"\xff\r\n\0")
    kb.notes.create("a", b"\xfe", mode="append")
    assert (vault / "a.md").read_bytes() == b"\xff\r\n\0\xfe"


def test_a_file_in_the_way_of_a_folder_is_told(kb: KnowledgeBase, vault: Path) -> None:
    put(vault / "a.md", "file")
    with pytest.raises(NoteAccessError) as caught:
        kb.notes.create("a.md/b", "x")
    assert str(caught.value).startswith("Failed to write file: ")
    assert str(caught.value).endswith("a.md/b.md")
    assert caught.value.hint == "A file lies where a folder would have to be."


def test_a_name_too_long_is_told(kb: KnowledgeBase, vault: Path) -> None:
    name = "长" * 100
    assert refusal(NoteNotFoundError, kb.notes.read, name) == f"File not found: {name}.md"
    message = refusal(NoteAccessError, kb.notes.create, name, "x")
    assert message == f"Failed to write file: File name too long: {name}.md"
    assert list(vault.iterdir()) == []


def test_a_path_longer_than_any_can_be_is_not_looked_for(kb: KnowledgeBase, vault: Path) -> None:
    path = "a/" * 20_000 + "x"  # following it name by name would take seconds
    assert refusal(NoteNotFoundError, kb.notes.read, path) == f"File not found: {path}.md"
    assert refusal(FolderNotFoundError, kb.notes.list_folder, path) == f"Folder not found: {path}"
    message = refusal(NoteAccessError, kb.notes.create, path, "x")
    assert message == f"Failed to write file: File name too long: {path}.md"
    assert list(vault.iterdir()) == []


CLOSED = """
import sys
from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError
with KnowledgeBase.open(sys.argv[1], Settings(vault=sys.argv[2])) as kb:
    notes = kb.notes
    for call in (lambda: notes.read("closed"), lambda: notes.create("closed", "x"),
                 lambda: notes.create("locked/new", "x"), lambda: notes.list_folder("locked")):
        try:
            print(call())
        except QmdError as error:
            print(f"{error} | {error.hint}")
"""


@posix
def test_missing_permissions_are_told_and_nothing_is_changed(
    kb: KnowledgeBase, vault: Path
) -> None:
    put(vault / "closed.md", "text").chmod(0)
    (vault / "locked").mkdir(mode=0)
    try:
        said = child.unprivileged(CLOSED, kb.path, vault).splitlines()
    finally:
        (vault / "locked").chmod(stat.S_IRWXU)
    advice = "Check the permissions of the file and of its folder."
    assert said == [
        f"Failed to read file: Permission denied: closed.md | {advice}",
        f"Failed to write file: Permission denied: closed.md | {advice}",
        f"Failed to write file: Permission denied: locked/new.md | {advice}",
        f"Failed to read folder: Permission denied: locked | {advice}",
    ]
    (vault / "closed.md").chmod(0o600)
    assert (vault / "closed.md").read_text() == "text"


# --- the write policy ----------------------------------------------------------------


def test_a_vault_outside_the_write_roots_can_be_read_only(tmp_path: Path) -> None:
    put(tmp_path / "vault/a.md", "a")
    (tmp_path / "root").mkdir()
    database = tmp_path / "x.sqlite"
    with KnowledgeBase.open(
        database, Settings(vault=tmp_path / "vault", write_roots=[tmp_path / "root"]), create=True
    ) as kb:
        assert kb.notes.read("a").text == "a"
        with pytest.raises(NoteAccessError) as caught:
            kb.notes.create("b", "x")
    assert str(caught.value).startswith("Failed to write file: ")
    assert "--write-root" in str(caught.value.hint)
    assert [each.name for each in (tmp_path / "vault").iterdir()] == ["a.md"]


def test_read_only_files_stay_as_they_are(tmp_path: Path) -> None:
    put(tmp_path / "vault/a.md", "a")
    database = tmp_path / "x.sqlite"
    with KnowledgeBase.open(
        database, Settings(vault=tmp_path / "vault", read_only_files=True), create=True
    ) as kb:
        with pytest.raises(NoteAccessError) as caught:
            kb.notes.create("a", "x")
        assert kb.notes.read("a").text == "a"
    assert "--read-only" in str(caught.value.hint)


# --- the vault of collections ----------------------------------------------------------


def test_the_root_lists_the_collections_as_folders(many: KnowledgeBase) -> None:
    for root in ("", "/", " ", ".", "//"):
        assert notes_texts.listing(many.notes.list_folder(root)) == "📁 home\n📁 work"
    assert notes_texts.listing(many.notes.list_folder("/work/")) == "📁 2025\n📄 log.txt"
    assert notes_texts.listing(many.notes.list_folder("work/2025")) == "📄 plan.md"


def test_what_a_search_returns_as_file_can_be_read_and_written(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    files = [hit.file for hit in many.search("zebra").hits]
    assert len(files) == 4
    for file in files:
        assert many.notes.read(file).text == f"text of {file}, a zebra\n"
    for file in (file for file in files if file.endswith(".md")):
        many.notes.create(file, "and a quagga\n", mode="append")
        assert (tmp_path / file).read_text() == f"text of {file}, a zebra\nand a quagga\n"
        assert file in [hit.file for hit in many.search("quagga").hits]


def test_a_first_name_that_is_no_collection_is_told_with_those_there_are(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    message = "Invalid path: no collection named 'x' (collections: home, work)"
    assert refusal(InvalidPathError, many.notes.read, "x/plan") == message
    assert refusal(InvalidPathError, many.notes.create, "x/plan", "x") == message
    assert refusal(InvalidPathError, many.notes.list_folder, "x") == message
    assert refusal(InvalidPathError, many.notes.list_folder, "/x/y/") == message
    message = "Invalid path: no collection named 'x.md' (collections: home, work)"
    assert refusal(InvalidPathError, many.notes.create, "x", "x") == message
    assert not (tmp_path / "x").exists()


def test_a_name_alone_is_a_note_of_some_collection(many: KnowledgeBase) -> None:
    assert many.notes.read("bread").path == "home/recipes/bread.md"
    assert many.notes.read("2025/plan").path == "work/2025/plan.md"
    with pytest.raises(NoteNotFoundError) as caught:
        many.notes.read("plan")
    assert caught.value.suggestions == ("home/plan.md", "work/2025/plan.md")
    with pytest.raises(NoteNotFoundError) as caught:
        many.notes.read("xyz")
    assert str(caught.value) == "File not found: xyz.md"
    assert caught.value.hint == "A path begins with a collection: home, work"


@posix
def test_a_collection_may_be_called_what_no_note_may(many: KnowledgeBase, tmp_path: Path) -> None:
    put(tmp_path / "third/a.md", "a")
    many.add_collection(tmp_path / "third", name="Notes: work")
    assert many.notes.create("Notes: work/a", "b").action == "overwritten"
    message = refusal(InvalidPathError, many.notes.create, "Notes: work/a:b", "x")
    assert message == 'Invalid path: contains illegal characters (<>:"|?*)'


def test_without_collections_the_vault_is_empty(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "none.sqlite", create=True) as kb:
        assert notes_texts.listing(kb.notes.list_folder("/")) == "(empty folder)"
        message = "Invalid path: no collection named 'a' (collections: none)"
        assert refusal(InvalidPathError, kb.notes.create, "a/b", "x") == message


def test_a_new_collection_is_there_at_once(many: KnowledgeBase, tmp_path: Path) -> None:
    notes = many.notes
    put(tmp_path / "third/a.md", "a")
    many.add_collection(tmp_path / "third")
    assert notes.read("third/a").text == "a"


def test_the_folder_of_a_collection_is_never_made(many: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "work").rename(tmp_path / "unplugged")
    message = refusal(NoteAccessError, many.notes.create, "work/new", "x")
    assert message.startswith("Failed to write file: the collection's folder is not there: ")
    assert refusal(FolderNotFoundError, many.notes.list_folder, "work") == "Folder not found: work"
    assert not (tmp_path / "work").exists()


@posix
def test_a_link_from_one_collection_into_another_stays_in_the_vault(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "home/shared.md").symlink_to(tmp_path / "work/2025/plan.md")
    assert many.notes.read("home/shared").text.startswith("text of work/2025/plan.md")


def test_a_name_holding_line_ends_is_one_line_of_a_listing(kb: KnowledgeBase, vault: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no such names")
    put(vault / "a\n📁 b.md")
    assert notes_texts.listing(kb.notes.list_folder("")) == "📄 a\\n📁 b.md"


def test_a_listing_names_folders_first_and_everything_in_them(
    kb: KnowledgeBase, vault: Path
) -> None:
    for file in (".obsidian/app.json", "b.md", "a.png", ".hidden", "Zoo/x.md", "empty/x"):
        put(vault / file)
    (vault / "empty/x").unlink()
    assert notes_texts.listing(kb.notes.list_folder("")) == (
        "📁 .obsidian\n📁 Zoo\n📁 empty\n📄 .hidden\n📄 a.png\n📄 b.md"
    )
    assert notes_texts.listing(kb.notes.list_folder("empty/")) == "(empty folder)"


# --- what the rules of a collection leave out ---------------------------------------------


def test_a_note_that_no_search_will_show_is_refused_where_its_tool_allows_it(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    put(tmp_path / "home/.qmdignore", "skip/\n")
    for create in (
        lambda: many.create_note("home/skip/new", "x"),
        lambda: many.notes.create("home/skip/new", "x", mode="new"),
    ):
        with pytest.raises(ConflictError, match=r"home/skip/new\.md would not be shown: .*skip/"):
            create()
    assert not (tmp_path / "home/skip").exists()
    written = many.notes.create("home/skip/new", "a quagga")
    assert written.problem is not None and "matches 'skip'" in written.problem
    assert many.notes.create("home/seen", "a quagga").problem is None
    assert [hit.file for hit in many.search("quagga").hits] == ["home/seen.md"]


def test_a_hidden_note_of_a_vault_that_is_no_collection_is_refused_or_named(
    kb: KnowledgeBase, vault: Path
) -> None:
    for path in (".obsidian/app.json", ".git/x.md", "a/.hidden"):
        with pytest.raises(ConflictError, match=r"would not be shown: .* is hidden"):
            kb.notes.create(path, "x", mode="new")
        written = kb.notes.create(path, "x")
        assert "is hidden" in str(written.problem)
    assert kb.notes.create("a/seen", "x").problem is None


def test_a_note_in_two_collections_is_shown_if_one_of_them_takes_it(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    put(tmp_path / "home/.qmdignore", "recipes/\n")
    many.add_collection(tmp_path / "home/recipes")
    assert many.notes.create("home/recipes/soup", "a quagga", mode="new").problem is None
    assert many.create_note("home/recipes/stew", "a quagga").problem is None
    many.notes.create("home/salad", "a quagga")
    assert many.move_note("home/salad", "home/recipes/").problem is None
    hits = {hit.file for hit in many.search("quagga").hits}
    assert hits == {"recipes/soup.md", "recipes/stew.md", "recipes/salad.md"}


def test_a_client_with_a_scope_is_told_the_rules_of_its_own_collections(
    many: KnowledgeBase, tmp_path: Path
) -> None:
    put(tmp_path / "home/.qmdignore", "recipes/hushed.md\n")
    many.add_collection(tmp_path / "home/recipes", ignore=["*.draft.md", "hushed.md"])
    own = frozenset({"recipes"})
    part = ScopedKnowledgeBase(many, AccessScope("t", "anna", own, own))
    problem = part.notes.create("recipes/soup.draft", "a quagga").problem
    assert problem is not None and "*.draft.md" in problem  # although home takes it
    problem = part.notes.create("recipes/hushed", "a quagga").problem
    assert problem is not None and ".qmdignore" not in problem  # that is the rule of home
