"""A copy of the database while others write, and a copy put in its place."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    CorruptDatabaseError,
    DatabaseMissingError,
    InputError,
    NotADatabaseError,
    StoreError,
)
from qmd.files.writing.writer import one_move_at_a_time
from qmd.health.restore import index_locked
from qmd.values import Progress
from tests.support import child
from tests.support.cli import filled
from tests.support.dump import assert_sound, dump, vector_rows
from tests.support.embedder import HashEmbedder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(20):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nbody {number}\n")
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        kb.embed()
    return path


def test_a_copy_holds_what_the_database_holds(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database, read_only=True) as kb:
        assert kb.backup(copy) == copy.stat().st_size
    assert {path.name for path in tmp_path.glob("*copy*")} == {"copy.sqlite"}
    assert dump(copy) == dump(database)
    assert vector_rows(copy) == vector_rows(database)
    assert_sound(copy)
    with KnowledgeBase.open(copy, Settings(embedder=HashEmbedder())) as kb:
        assert kb.vsearch("Note 3 body 3", limit=1).hits[0].file == "notes/3.md"


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.migrates
@pytest.mark.usefixtures("usual_umask")
def test_only_the_owner_can_read_a_database_and_its_copies(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    database, copy = folder / "kb.sqlite", tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_context("/", "so that there is a log")
        kb.backup(copy)
        assert {path.name: mode(path) for path in folder.glob("kb.sqlite*")} == {
            "kb.sqlite": 0o600,
            "kb.sqlite-wal": 0o600,
            "kb.sqlite-shm": 0o600,
        }
    assert (mode(folder), mode(copy)) == (0o700, 0o600)
    shutil.rmtree(folder)
    KnowledgeBase.restore(database, copy)
    assert (mode(folder), mode(database)) == (0o700, 0o600)
    database.unlink()
    (tmp_path / "link.sqlite").symlink_to(database)
    KnowledgeBase.open(tmp_path / "link.sqlite", create=True).close()
    assert mode(database) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.parametrize(("of_database", "of_lock"), [(0o600, 0o600), (0o660, 0o660)])
def test_who_may_use_the_database_may_take_its_locks(
    database: Path, of_database: int, of_lock: int
) -> None:
    database.chmod(of_database)
    before = os.umask(0)
    try:
        with index_locked(database), one_move_at_a_time(database):
            locks = {path.name: mode(path) for path in database.parent.glob("kb.sqlite.*lock")}
    finally:
        os.umask(before)
    assert locks == {"kb.sqlite.lock": of_lock, "kb.sqlite.moves.lock": of_lock}


@pytest.mark.parametrize("made_by", ["backup", "hand"])
def test_nothing_is_left_beside_a_backup(database: Path, tmp_path: Path, made_by: str) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    copy = folder / "copy.sqlite"
    if made_by == "backup":
        with KnowledgeBase.open(database) as kb:
            kb.backup(copy)
    else:
        shutil.copy(database, copy)  # which has a log while it is read
    before = copy.read_bytes()
    KnowledgeBase.restore(database, copy)
    assert [path.name for path in folder.iterdir()] == ["copy.sqlite"]
    assert copy.read_bytes() == before
    assert dump(database) == dump(copy)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.usefixtures("usual_umask")
def test_a_database_that_is_shared_stays_so(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    database.chmod(0o640)
    with KnowledgeBase.open(database) as kb:
        kb.cleanup()
        kb.backup(copy)
        assert mode(copy) == 0o600
        copy.chmod(0o644)
        kb.backup(copy, force=True)
        assert mode(copy) == 0o644
    KnowledgeBase.restore(database, copy)
    assert (mode(database), mode(Path(f"{database}.bak"))) == (0o640, 0o640)
    KnowledgeBase.rescue(database)
    assert (mode(database), mode(Path(f"{database}.bak-2"))) == (0o640, 0o640)


def test_copies_made_while_another_thread_indexes_are_whole(database: Path, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    for number in range(1000):
        (root / f"more{number}.md").write_text(f"# More {number}\n\nthe text of {number}\n")
    copies: list[Path] = []
    indexing = threading.Event()

    def tick(progress: Progress) -> None:
        if progress.stage == "index":
            indexing.set()

    with KnowledgeBase.open(database) as kb, KnowledgeBase.open(database) as other:
        run = threading.Thread(target=lambda: kb.index(progress=tick))
        run.start()
        indexing.wait(30)
        while run.is_alive():
            copies.append(tmp_path / f"copy{len(copies)}.sqlite")
            other.backup(copies[-1])
        run.join()
    assert copies
    for copy in copies:
        assert_sound(copy)
    with KnowledgeBase.open(copies[0]) as kb:
        kb.index()
    assert dump(copies[0]) == dump(database)


def test_nothing_is_overwritten_unasked(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "letter.txt"
    target.write_text("dear")
    with KnowledgeBase.open(database, read_only=True) as kb:
        with pytest.raises(ConflictError, match="exists"):
            kb.backup(target)
        with pytest.raises(ConflictError):
            kb.backup(database)
        with pytest.raises(InputError, match="directory"):
            kb.backup(tmp_path / "notes", force=True)
        with pytest.raises(StoreError):
            kb.backup(tmp_path / "no such folder/x.sqlite")
        assert target.read_text() == "dear"
        for _ in range(2):  # reading it leaves a log beside it, which is no program
            kb.backup(target, force=True)
            assert dump(target) == dump(database)


def test_a_database_in_use_is_no_target(database: Path, tmp_path: Path) -> None:
    with KnowledgeBase.open(database) as kb:
        kb.add_context("/", "so that there is a log")
        with pytest.raises(ConflictError, match="open"):
            kb.backup(database, force=True)


def test_a_restored_backup_is_the_database_and_the_old_one_is_kept(
    database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database) as kb:
        kb.backup(copy)
        before = dump(database)
        kb.remove_collection("notes")
    without = dump(database)
    kept = KnowledgeBase.restore(database, copy)
    assert kept == Path(f"{database}.bak")
    assert dump(database) == before
    assert dump(kept) == without
    assert_sound(database)
    again = KnowledgeBase.restore(database, copy)
    assert again == Path(f"{database}.bak-2")
    assert dump(again) == before


@pytest.mark.parametrize("damage", ["header", "pages", "log"])
def test_a_damaged_database_is_replaced_with_its_log(
    database: Path, tmp_path: Path, damage: str
) -> None:
    copy = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database, read_only=True) as kb:
        kb.backup(copy)
    wanted = dump(copy)
    if damage == "log":
        # What a killed process leaves: a log whose pages belong to the old file.
        log = Path(f"{database}-wal")
        killed = child.start(WRITES_AND_WAITS, database)
        assert killed.stdout is not None and killed.stdout.readline()
        killed.kill()
        killed.communicate()
        assert log.stat().st_size
        database.write_bytes(database.read_bytes()[:8192] + bytes(4096))
    else:
        data = bytearray(database.read_bytes())
        start = 0 if damage == "header" else 4096
        data[start : start + 4096] = b"x" * 4096
        database.write_bytes(data)
    KnowledgeBase.restore(database, copy)
    assert dump(database) == wanted
    assert_sound(database)


WRITES_AND_WAITS = """
import sys
from qmd import KnowledgeBase
kb = KnowledgeBase.open(sys.argv[1])
kb.add_context("/", "in the log")
print("written", flush=True)
sys.stdin.read()
"""


def test_a_database_that_is_kept_or_open_is_not_replaced(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database) as kb:
        kb.backup(copy)
        kb.add_context("/", "in use")
        with pytest.raises(ConflictError, match="open"):
            KnowledgeBase.restore(database, copy)
    other = child.start(WRITES_AND_WAITS, database)
    try:
        assert other.stdout is not None and other.stdout.readline()
        with pytest.raises(ConflictError, match="open"):
            KnowledgeBase.restore(database, copy)
    finally:
        other.communicate()
    assert [context.text for context in opened(database)] == ["in the log"]
    KnowledgeBase.restore(database, copy)
    assert opened(database) == []


def opened(database: Path) -> list:  # type: ignore[type-arg]
    with KnowledgeBase.open(database, read_only=True) as kb:
        return kb.contexts()


def test_what_is_no_sound_backup_changes_nothing(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    text = tmp_path / "text"
    text.write_text("no database" * 100)
    foreign = tmp_path / "foreign.sqlite"
    child.run(
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        " c.execute('create table t (x)'); c.commit()",
        foreign,
    )
    damaged = tmp_path / "damaged.sqlite"
    with KnowledgeBase.open(database, read_only=True) as kb:
        kb.backup(damaged)
    data = bytearray(damaged.read_bytes())
    for page in range(8, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    damaged.write_bytes(data)
    for bad, kind in (
        (tmp_path / "nothing", DatabaseMissingError),
        (text, NotADatabaseError),
        (foreign, StoreError),
        (damaged, CorruptDatabaseError),
        (database, ConflictError),
    ):
        with pytest.raises(kind):
            KnowledgeBase.restore(database, bad)
    assert database.read_bytes() == before


def test_on_the_command_line(tmp_path: Path) -> None:
    scratch = filled(tmp_path)
    made = scratch.ok("backup", "copy.sqlite", "--json").json()
    assert made["bytes"] == (tmp_path / "copy.sqlite").stat().st_size
    refused = scratch.call("backup", "copy.sqlite")
    assert refused.code == 1
    assert "--force" in refused.err
    scratch.ok("backup", "copy.sqlite", "--force")
    scratch.ok("collection", "remove", "notes")
    restored = scratch.ok("restore-db", "copy.sqlite")
    kept = f"{scratch.database}.bak"
    assert f"The old one is {kept}\n" in restored.out
    assert f"can be undone only there: qmd undo --db {kept}\n" in restored.out
    scratch.ok("undo", "--db", kept)
    assert scratch.ok("search", "parser", "--json").json()
    scratch.database.unlink()
    assert scratch.ok("restore-db", "copy.sqlite", "--json").json()["kept"] is None
    assert scratch.ok("ls", "notes").out


def test_tokens_that_come_back_are_named(tmp_path: Path) -> None:
    scratch = filled(tmp_path)
    scratch.ok("server", "token", "create", "anna", "--read", "notes")
    scratch.ok("backup", "copy.sqlite")
    scratch.ok("server", "token", "revoke", "anna")
    restored = scratch.ok("restore-db", "copy.sqlite")
    assert "those that were revoked since, too: anna." in restored.err
    assert scratch.ok("restore-db", "copy.sqlite", "--json").json()["tokens"] == ["anna"]
