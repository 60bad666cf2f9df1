"""A database damaged, locked, full, foreign or out of reach: told so, and left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    CorruptDatabaseError,
    DatabaseBusyError,
    DatabaseMissingError,
    DiskFullError,
    NotADatabaseError,
    QmdError,
    SchemaTooNewError,
    StoreError,
)
from qmd.store import open_store
from qmd.store.sqlite import library as sqlite
from tests.support import child, disk
from tests.support.dump import assert_sound, dump
from tests.support.embedder import HashEmbedder

pytestmark = pytest.mark.migrates


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(30):
        text = f"# Note {number}\n\nsourdough 数据库 " + f"word{number} " * 400
        (root / f"{number}.md").write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def database(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
    return path


def refused(path: Path, kind: type[QmdError]) -> QmdError:
    """Neither opening nor reading works, the error is as expected, and no byte changes."""
    before = path.read_bytes()
    error = None
    for options in ({"create": True}, {}, {"read_only": True}):
        with pytest.raises(kind) as caught:
            KnowledgeBase.open(path, **options)
        error = caught.value
        assert error.hint
        assert str(path) in str(error)
    assert path.read_bytes() == before
    assert error is not None
    return error


# --- the wrong file --------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"a note", b"a long note\n" * 500, bytes(5000)])
def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(data)
    refused(path, NotADatabaseError)


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    child.run(
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        " c.execute('CREATE TABLE documents (id, body)'); c.commit()",
        path,
    )
    assert "another program" in str(refused(path, StoreError))


def test_a_database_of_a_newer_version_is_refused_untouched(database: Path) -> None:
    connection = sqlite.connect(database, read_only=False)
    connection.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES ('qmd', '9999_future', '2030-01-01')"
    )
    connection.close()
    assert "upgrade" in (refused(database, SchemaTooNewError).hint or "")


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    for options in ({"create": True}, {"read_only": True}):
        with pytest.raises(NotADatabaseError, match="is a directory"):
            KnowledgeBase.open(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_made_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/kb.sqlite"
    with pytest.raises(DatabaseMissingError):
        KnowledgeBase.open(path)
    assert not path.parent.exists()
    KnowledgeBase.open(path, create=True).close()
    assert path.stat().st_size > 0


def test_an_impossible_path_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file/kb.sqlite", "a\0b", "x" * 300, "loop"):
        with pytest.raises(StoreError) as caught:
            KnowledgeBase.open(tmp_path / name, create=True)
        assert caught.value.hint


@pytest.mark.parametrize("name", ["a b#c?d%41.sqlite", "数据库.sqlite", "q'\"uote\n.sqlite"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with KnowledgeBase.open(tmp_path / name, create=True) as kb:
        assert kb.collections() == []
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with KnowledgeBase.open("kb.sqlite", create=True) as kb:
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        kb.add_collection(tmp_path, name="here")
        assert len(kb.collections()) == 1
    assert list((tmp_path / "sub").iterdir()) == []


# --- damage ----------------------------------------------------------------------------


def test_a_truncated_database_is_called_damaged_and_the_remedy_works(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    good = dump(database)
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(CorruptDatabaseError) as caught, KnowledgeBase.open(database) as kb:
        kb.index(verify=True)
        for document in kb.documents():
            kb.get(document.file)
    assert "not affected" in (caught.value.hint or "")
    database.rename(tmp_path / "away")
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
    assert dump(database) == good


def test_overwritten_pages_are_found_by_doctor_and_never_crash_a_search(database: Path) -> None:
    size = database.stat().st_size
    with database.open("r+b") as file:
        for page in range(size // 4096 * 4 // 5, size // 4096, 2):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        for use in (lambda: kb.search("sourdough"), kb.documents, kb.index, kb.status):
            try:
                use()
            except CorruptDatabaseError as error:
                assert error.hint
        errors = [check for check in kb.doctor() if check.status == "error"]
        assert errors
        assert all(check.remedy for check in errors)


# --- locks -----------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from qmd.store.sqlite.library import connect
connection = connect(Path(sys.argv[1]), read_only=False)
connection.execute(sys.argv[2])
connection.execute("UPDATE z_meta SET value = value")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_lock_held_too_long_is_said_and_harmless(database: Path) -> None:
    holder = child.start(HOLD, database, "BEGIN IMMEDIATE")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    store = open_store(database, timeout_s=0.05)
    try:
        with pytest.raises(DatabaseBusyError) as caught:
            store.write(lambda writer: writer.collections.remove("notes"))
        assert "another process" in str(caught.value)
        assert caught.value.hint
        with store.reading() as reader:  # readers are not locked out
            assert reader.collections.by_name("notes").documents == 30
        child.finish(holder)
        store.write(lambda writer: writer.collections.rename("notes", "renamed"))
    finally:
        store.close()
    assert_sound(database)


def test_a_locked_file_is_not_read_past_its_lock(database: Path) -> None:
    child.run(
        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode = DELETE')",
        database,
    )
    code = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    code += "c.execute('BEGIN EXCLUSIVE')\nprint('locked', flush=True)\nsys.stdin.read()"
    holder = child.start(code, database)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(DatabaseBusyError):
        sqlite.connect(database, read_only=True, timeout=0.05)
    child.finish(holder)


# --- no permission ---------------------------------------------------------------------

READ_ONLY = """
import sys
from qmd import KnowledgeBase
from qmd.errors import ReadOnlyError
with KnowledgeBase.open(sys.argv[1]) as kb:
    assert len(kb.search("sourdough").hits) == 10
    assert kb.get("notes/3.md").text.startswith("# Note 3")
    assert kb.status().total_documents == 30
    for write in (kb.index, kb.cleanup, lambda: kb.remove_collection("notes"),
                  lambda: kb.add_context("/", "x")):
        try:
            write()
        except ReadOnlyError as error:
            assert error.hint
        else:
            raise AssertionError("could write")
print("done")
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o555])
def test_a_read_only_database_is_searched_and_not_written(
    tmp_path: Path, notes: Path, folder_mode: int
) -> None:
    folder = tmp_path / "folder"
    path = folder / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
    before = path.read_bytes()
    path.chmod(0o444)
    folder.chmod(folder_mode)
    assert child.unprivileged(READ_ONLY, path) == "done"
    assert path.read_bytes() == before


def test_a_reader_without_write_permission_sees_what_others_write(
    tmp_path: Path, notes: Path
) -> None:
    """Without a lock nothing may be kept from one reading to the next."""
    code = """
import subprocess, sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1], read_only=True) as kb:
    for number in range(4):
        print(kb.status().total_documents, len(kb.search("sourdough", limit=None).hits), flush=True)
        sys.stdin.readline()
"""
    folder = tmp_path / "folder"
    path = folder / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
    folder.chmod(0o555)
    reader = child.start_unprivileged(code, path)
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline() == "0 0\n"
    for number in (30, 29, 28):
        folder.chmod(0o755)
        with KnowledgeBase.open(path) as kb:
            kb.index()
        (notes / f"{number - 1}.md").unlink()
        folder.chmod(0o555)
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{number} {number}\n"
    child.finish(reader)


def test_where_nothing_may_be_written_no_database_is_made(tmp_path: Path) -> None:
    code = """
import sys
from qmd import KnowledgeBase
from qmd.errors import ReadOnlyError
for name in ("kb.sqlite", "new/kb.sqlite"):
    try:
        KnowledgeBase.open(sys.argv[1] + "/" + name, create=True)
    except ReadOnlyError as error:
        assert error.hint
        print("refused")
"""
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o555)
    assert child.unprivileged(code, folder) == "refused\nrefused"


# --- a full disk -----------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk.small(tmp_path / "disk", "3m") as directory:
        yield directory


@pytest.mark.parametrize("embedding", [False, True])
def test_a_full_disk_loses_nothing_and_can_be_written_later(
    small_disk: Path, notes: Path, embedding: bool
) -> None:
    path = small_disk / "kb.sqlite"
    ballast = small_disk / "ballast"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(notes, name="notes")
        if embedding:
            kb.index()
        fill(ballast)
        with pytest.raises(DiskFullError) as caught:
            kb.embed() if embedding else kb.index()
        assert "space" in (caught.value.hint or "")
        assert kb.status().total_documents == (30 if embedding else 0)
        assert len(kb.search("sourdough").hits) == (10 if embedding else 0)
        ballast.unlink()
        kb.index()
        assert kb.embed().remaining == 0
        assert kb.status().total_documents == 30
    assert_sound(path)


def fill(path: Path) -> None:
    """Leave no block free."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_database_at_its_page_limit_rolls_back_as_on_a_full_disk(database: Path) -> None:
    store = open_store(database)
    try:
        pages = store.write_outside_transaction(
            lambda writer: writer.connection.execute("PRAGMA page_count").fetchone()[0]
        )
        store.write_outside_transaction(
            lambda writer: writer.connection.execute(
                f"PRAGMA max_page_count = {pages + 5}"
            ).fetchone()
        )
        with pytest.raises(DiskFullError):
            store.write(
                lambda writer: writer.connection.execute(
                    "INSERT INTO z_meta VALUES ('big', ?)", ["x" * 100_000]
                )
            )
        store.write(
            lambda writer: writer.connection.execute("INSERT INTO z_meta VALUES ('small', 'x')")
        )
    finally:
        store.close()
    assert_sound(database)
