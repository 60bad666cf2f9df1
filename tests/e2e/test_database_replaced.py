"""
A database file that is deleted, moved or replaced while programs have it open.

What a tool replaces is kept in the database. So nothing may be replaced while what would keep it
is a file that nobody can open any more.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.cli.main import main
from qmd.cli.render_reports import render_status
from qmd.errors import (
    DatabaseReplacedError,
    NotADatabaseError,
    NoteAccessError,
    SchemaTooNewError,
    StoreError,
)
from qmd.health.doctor import keeping_checks
from qmd.ingest.keep.freshness import IndexLock
from qmd.operations import texts
from qmd.server.app import build_app
from qmd.store.sql.shared import KEEPER
from qmd.store.sqlite.connections import Connections
from qmd.store.sqlite.library import connect
from qmd.tools.toolsets import select
from tests.support import writes
from tests.support.cli import Scratch, filled
from tests.support.http_server import request
from tests.support.live import POLLING, Told, until
from tests.support.mcp_client import RawClient
from tests.support.rest import client_of, rest_client

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows does not let go of a file that is open"
)

NOTE = "notes/plan"
REFUSED = (DatabaseReplacedError, NoteAccessError)  # what a write says is the note's error


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """``notes/plan.md`` and, in a directory of its own, the database that has indexed it."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/plan.md").write_text("# Plan\n\na zebra\n")
    (tmp_path / "state").mkdir()
    make(tmp_path / "state/kb.sqlite", tmp_path / "notes")
    return tmp_path


def make(database: Path, folder: Path) -> None:
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(folder, name="notes")
        kb.index()


@pytest.fixture
def kb(home: Path) -> Iterator[KnowledgeBase]:
    """Open, with connections that read and one that writes."""
    with KnowledgeBase.open(home / "state/kb.sqlite") as kb:
        kb.notes.create(NOTE, "first\n")
        kb.notes.create(NOTE, "second\n")
        yield kb


def text(home: Path) -> str:
    return (home / "notes/plan.md").read_text()


def kept(database: Path, home: Path) -> list[bytes]:
    """The earlier contents of the note that another process finds, the oldest first."""
    with KnowledgeBase.open(database, read_only=True) as kb:
        history = kb.revisions.history(home / "notes/plan.md")
        return [kb.revisions.content(home / "notes/plan.md", each.number) for each in history][::-1]


def files_of(database: Path) -> list[Path]:
    return sorted(database.parent.glob(f"{database.name}*"))


# --- it is gone ----------------------------------------------------------------------


def delete_all(home: Path) -> None:
    for file in files_of(home / "state/kb.sqlite"):
        file.unlink()


def delete_file(home: Path) -> None:
    (home / "state/kb.sqlite").unlink()


def move_aside(home: Path) -> None:
    (home / "state/kb.sqlite").rename(home / "state/aside.sqlite")


def rename_directory(home: Path) -> None:
    (home / "state").rename(home / "renamed")


@pytest.mark.parametrize("lose", [delete_all, delete_file, move_aside, rename_directory])
def test_while_it_is_gone_nothing_is_replaced_and_everything_says_so(
    home: Path, kb: KnowledgeBase, caplog: pytest.LogCaptureFixture, lose: Callable[[Path], None]
) -> None:
    caplog.set_level(logging.INFO)
    lose(home)
    for _ in range(3):
        with pytest.raises(REFUSED) as refused:
            kb.notes.create(NOTE, "third\n")
        assert "was deleted or moved while it was open" in str(refused.value)
        assert "qmd db restore" in str(refused.value.hint)
        with pytest.raises(DatabaseReplacedError):
            writes.append(kb.files, home / "notes/plan.md", lambda old: b"more", tool="test")
        with pytest.raises(DatabaseReplacedError):
            kb.search("zebra")
        with pytest.raises(DatabaseReplacedError):
            kb.status()
        (notice,) = kb.freshness().notices
        assert "was deleted or moved" in notice
    assert text(home) == "second\n"
    assert [record.message for record in caplog.records if "deleted" in record.message] == [notice]
    assert not (home / "state/kb.sqlite").exists()  # and no empty one is made in its place


@pytest.mark.parametrize(
    ("lose", "bring_back"),
    [
        (move_aside, lambda home: (home / "state/aside.sqlite").rename(home / "state/kb.sqlite")),
        (rename_directory, lambda home: (home / "renamed").rename(home / "state")),
    ],
)
def test_put_back_it_is_used_as_before(
    home: Path,
    kb: KnowledgeBase,
    lose: Callable[[Path], None],
    bring_back: Callable[[Path], None],
) -> None:
    lose(home)
    with pytest.raises(REFUSED):
        kb.notes.create(NOTE, "third\n")
    bring_back(home)
    kb.notes.create(NOTE, "third\n")
    assert kb.get("notes/plan.md").text == "third\n"
    expected = [b"# Plan\n\na zebra\n", b"first\n", b"second\n"]
    assert kept(home / "state/kb.sqlite", home) == expected


def test_a_file_moved_without_its_log_holds_what_the_log_held(
    home: Path, kb: KnowledgeBase
) -> None:
    move_aside(home)
    with pytest.raises(REFUSED):
        kb.notes.create(NOTE, "third\n")
    kb.close()
    for companion in ("-wal", "-shm"):
        (home / f"state/kb.sqlite{companion}").unlink(missing_ok=True)
    assert kept(home / "state/aside.sqlite", home) == [b"# Plan\n\na zebra\n", b"first\n"]


@pytest.mark.parametrize("lose", [delete_all, move_aside])
def test_gone_in_the_middle_of_a_write_the_file_stays(
    home: Path, kb: KnowledgeBase, lose: Callable[[Path], None]
) -> None:
    def added(old: bytes | None) -> bytes:
        lose(home)
        return b"more"

    with pytest.raises(DatabaseReplacedError):
        writes.append(kb.files, home / "notes/plan.md", added, tool="test")
    assert text(home) == "second\n"
    assert [each.name for each in (home / "notes").iterdir()] == ["plan.md"]


def test_threads_that_look_at_once_are_told_of_one_change_once(home: Path) -> None:
    """Threads look before, between and after the deletions of the file and its log."""
    database = home / "state/kb.sqlite"
    told: list[DatabaseReplacedError] = []
    connections = Connections(database, 1.0, told.append)
    connection = connections.open(read_only=False)
    connection.execute("PRAGMA user_version").fetchall()
    start = threading.Barrier(5)

    def look() -> None:
        start.wait()
        for _ in range(60):
            with contextlib.suppress(DatabaseReplacedError):
                connections.require_current()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with futures.ThreadPoolExecutor(4) as threads:
            for _ in range(4):
                threads.submit(look)
            start.wait()
            delete_all(home)
    finally:
        sys.setswitchinterval(interval)
    with pytest.raises(DatabaseReplacedError):
        connections.require_current()
    connections.close(connection)
    connections.release_file()
    assert ["deleted or moved" in str(error) for error in told] == [True]


# --- another one is there ------------------------------------------------------------


@pytest.fixture
def other(home: Path) -> Path:
    """Another sound database, of another folder beside the same notes."""
    (home / "more").mkdir()
    (home / "more/b.md").write_text("# B\n\na quagga\n")
    path = home / "other.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(home / "more")
        kb.add_collection(home / "notes")
        kb.index(["more"])
    return path


def test_another_file_at_the_path_is_opened(
    home: Path, kb: KnowledgeBase, other: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before = kb.notes
    delete_all(home)
    shutil.copy(other, home / "state/kb.sqlite")
    assert [hit.file for hit in kb.search("quagga").hits] == ["more/b.md"]
    assert kb.search("zebra").hits == ()
    kb.notes.create(NOTE, "third\n")
    assert kept(home / "state/kb.sqlite", home) == [b"second\n"]
    assert kb.get("notes/plan.md").text == "third\n"
    assert len([each for each in caplog.records if "was replaced" in each.message]) == 1
    with pytest.raises(REFUSED):  # made for the old file, whatever it remembers of that
        before.create(NOTE, "fourth\n")
    assert text(home) == "third\n"


def test_a_file_put_over_it_is_opened(home: Path, kb: KnowledgeBase, other: Path) -> None:
    for companion in ("-wal", "-shm"):
        (home / f"state/kb.sqlite{companion}").unlink()
    other.replace(home / "state/kb.sqlite")
    kb.notes.create(NOTE, "third\n")
    assert kept(home / "state/kb.sqlite", home) == [b"second\n"]


def test_closing_the_old_file_leaves_the_log_of_the_new_one(
    home: Path, kb: KnowledgeBase, other: Path
) -> None:
    """SQLite deletes a log by its name."""
    delete_all(home)
    shutil.copy(other, home / "state/kb.sqlite")
    newcomer = connect(home / "state/kb.sqlite", read_only=False)
    newcomer.execute("CREATE TABLE newcomer (a)")
    assert kb.search("quagga").hits
    assert (home / "state/kb.sqlite-wal").stat().st_size > 0
    kb.close()
    newcomer.execute("INSERT INTO newcomer VALUES (1)")
    assert newcomer.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    newcomer.close()
    with KnowledgeBase.open(home / "state/kb.sqlite") as again:
        assert again.search("quagga").hits


def test_a_link_that_is_turned_to_another_file_is_followed(home: Path, other: Path) -> None:
    link = home / "link.sqlite"
    link.symlink_to(home / "state/kb.sqlite")
    with KnowledgeBase.open(link) as kb:
        kb.notes.create(NOTE, "first\n")
        (home / "new").symlink_to(other)
        (home / "new").replace(link)
        kb.notes.create(NOTE, "second\n")
    assert kept(other, home) == [b"first\n"]
    assert kept(home / "state/kb.sqlite", home) == [b"# Plan\n\na zebra\n"]


def test_a_backup_that_another_process_restores_is_opened(
    home: Path, kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.backup(tmp_path / "backup")
    kb.notes.create(NOTE, "third\n")
    delete_all(home)
    scratch = Scratch(tmp_path / "scratch")
    restored = scratch.run(
        "--db", str(home / "state/kb.sqlite"), "restore-db", str(tmp_path / "backup")
    )
    assert restored.code == 0, restored.err
    kb.notes.create(NOTE, "fourth\n")
    expected = [b"# Plan\n\na zebra\n", b"first\n", b"third\n"]
    assert kept(home / "state/kb.sqlite", home) == expected


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all\n" * 100)


def newer(path: Path) -> None:
    KnowledgeBase.open(path, create=True).close()
    connection = connect(path, read_only=False)
    connection.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES ('qmd', '9999_future', '')"
    )
    connection.close()


@pytest.mark.parametrize(
    ("put", "error"), [(garbage, NotADatabaseError), (newer, SchemaTooNewError)]
)
def test_a_file_that_cannot_be_opened_is_left_alone_until_there_is_a_better_one(
    home: Path,
    kb: KnowledgeBase,
    other: Path,
    caplog: pytest.LogCaptureFixture,
    put: Callable[[Path], None],
    error: type[StoreError],
) -> None:
    database = home / "state/kb.sqlite"
    delete_all(home)
    put(database)
    data = database.read_bytes()
    for _ in range(3):
        with pytest.raises(error):
            kb.search("zebra")
        with pytest.raises(error):
            kb.notes.create(NOTE, "third\n")
        assert kb.freshness().notices
    assert text(home) == "second\n"
    assert database.read_bytes() == data
    assert len([each for each in caplog.records if "cannot be opened" in each.message]) == 1
    database.unlink()
    with pytest.raises(DatabaseReplacedError, match="deleted or moved"):
        kb.search("zebra")
    shutil.copy(other, database)
    kb.notes.create(NOTE, "third\n")
    assert kept(database, home) == [b"second\n"]


# --- a newer program has migrated it ---------------------------------------------------


def migrate_further(database: Path) -> None:
    """As a newer program does."""
    connection = connect(database, read_only=False)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE future (id INTEGER PRIMARY KEY)")
    connection.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES ('qmd', '9999_future', '')"
    )
    connection.execute("COMMIT")
    connection.close()


def test_a_database_that_is_newer_now_is_neither_read_nor_written(
    home: Path, kb: KnowledgeBase
) -> None:
    database = home / "state/kb.sqlite"
    assert kb.search("second").hits  # a connection is open for searches, and one for writes
    migrate_further(database)
    wal = database.with_name(f"{database.name}-wal")
    before = database.read_bytes(), wal.read_bytes()
    for _ in range(3):
        with pytest.raises(SchemaTooNewError, match="9999_future"):
            kb.search("second")
        with pytest.raises(SchemaTooNewError):
            kb.index()
        with pytest.raises((SchemaTooNewError, NoteAccessError)):
            kb.notes.create(NOTE, "third\n")
    with rest_client(kb) as client:
        for answer in (client.get("/status"), client.post("/search", json={"query": "second"})):
            assert (answer.status_code, answer.headers["qmd-error"]) == (503, "schema_too_new")
            assert "was written by a newer qmd" in answer.json()["detail"]
            assert "start that again" in answer.json()["detail"]
    with client_of(build_app(kb)) as browser:
        page = browser.get("/overview", headers={"accept": "text/html"})
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert "was written by a newer qmd" in page.text
    assert text(home) == "second\n"
    assert (database.read_bytes(), wal.read_bytes()) == before


def test_tables_that_others_make_do_not_disturb(home: Path, kb: KnowledgeBase) -> None:
    connection = connect(home / "state/kb.sqlite", read_only=False)
    connection.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY)")
    connection.close()
    kb.notes.create(NOTE, "third\n")
    assert kb.search("third").hits


def test_the_keeper_of_a_database_that_is_newer_now_leaves_it_to_a_newer_program(
    home: Path,
) -> None:
    database = home / "state/kb.sqlite"
    with KnowledgeBase.open(database) as kb:
        told = Told(kb)
        kb.keep(embed=False, polling=POLLING, poll_s=0.1)
        told.wait_for(lambda: told.of("synced"))
        migrate_further(database)
        (home / "notes/new.md").write_text("# New\n")
        told.wait_for(lambda: told.of("problem"))
        assert "was written by a newer qmd" in (told.of("problem")[0].message or "")
        until(IndexLock(database).take)


def test_a_keeper_before_2_0_is_named(
    home: Path, kb: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    """It keeps its lock, though it cannot read what a newer program has migrated."""
    lock = IndexLock(home / "state/kb.sqlite")
    assert lock.take()

    def put_record(pid: int) -> None:
        record = json.dumps({"pid": pid, "watch": "native", "embeds": True, "notices": []})
        kb._store.write(lambda writer: writer.meta.put(KEEPER, record))

    put_record(os.getpid())
    sentence = (
        f"The index is kept by an older qmd, process {os.getpid()}, which cannot read this database"
        " any more. End it: another process takes over."
    )
    fresh = kb.freshness()
    assert (fresh.notices, fresh.watch, fresh.embedding) == ((sentence,), "off", False)
    render_status(kb.status(), fresh)
    assert "\nProblem    The index is kept by an older qmd" in capsys.readouterr().out
    (status,) = [tool for tool in select().tools if tool.name == "status"]
    told = status.call(kb, {}, texts.MCP)
    assert sentence in [block.text for block in told.blocks]
    with rest_client(kb) as client:
        assert client.get("/status").json()["freshness"]["problems"] == [sentence]
    [check, *_] = keeping_checks(kb._store)
    assert (check.status, check.message) == ("warning", sentence)
    assert main(["--db", str(home / "state/kb.sqlite"), "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == [sentence]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    put_record(ended.pid)
    (notice,) = kb.freshness().notices
    assert notice.startswith("The index is kept by a process of an older qmd, which cannot read")
    lock.release()
    assert kb.freshness().notices == ()


# --- its log is gone -----------------------------------------------------------------


@pytest.mark.parametrize("suffixes", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_a_log_that_is_deleted_takes_nothing_with_it(
    home: Path, kb: KnowledgeBase, suffixes: tuple[str, ...]
) -> None:
    """All that was kept so far is in the log, which this process alone still has open."""
    for suffix in suffixes:
        (home / f"state/kb.sqlite{suffix}").unlink()
    kb.notes.create(NOTE, "third\n")
    assert kb.search("third").hits
    expected = [b"# Plan\n\na zebra\n", b"first\n", b"second\n"]
    assert kept(home / "state/kb.sqlite", home) == expected
    kb.close()
    assert kept(home / "state/kb.sqlite", home) == expected
    connection = connect(home / "state/kb.sqlite", read_only=True)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_logs_that_come_and_go_as_they_should_are_no_news(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The last process that closes a database deletes its log."""
    database = home / "state/kb.sqlite"
    with KnowledgeBase.open(database) as kb:
        store = kb._store
        for number in range(3):
            with pytest.raises(ZeroDivisionError), store.reading():  # a failed one is not kept
                raise ZeroDivisionError
            with KnowledgeBase.open(database) as second:
                second.notes.create(NOTE, f"{number}\n")
            assert kb.get("notes/plan.md").text == f"{number}\n"
        assert kb._store is store
    assert not caplog.records


def test_a_process_without_descriptors_does_not_take_the_file_for_deleted(home: Path) -> None:
    script = (
        "import os, resource, sys\n"
        "from qmd import KnowledgeBase\n"
        "from qmd.errors import DatabaseReplacedError, StoreError\n"
        "KnowledgeBase.open(sys.argv[1]).close()  # all that is imported opens files too\n"
        "last = os.open(os.devnull, os.O_RDONLY)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, last + 1))\n"
        "try:\n"
        "    KnowledgeBase.open(sys.argv[1])\n"
        "except StoreError as error:\n"
        "    print(isinstance(error, DatabaseReplacedError))\n"
    )
    database = str(home / "state/kb.sqlite")
    done = subprocess.run(
        [sys.executable, "-c", script, database], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# --- whoever keeps the index follows ---------------------------------------------------


def test_the_keeper_follows_to_the_new_file(home: Path, other: Path) -> None:
    with KnowledgeBase.open(home / "state/kb.sqlite") as kb:
        told = Told(kb)
        keeper = kb.keep(embed=False, polling=POLLING, poll_s=0.1)
        told.wait_for(lambda: told.of("synced"))
        delete_all(home)  # the lock that says who keeps the index among them
        told.wait_for(lambda: told.of("problem"))
        assert "was deleted or moved" in (told.of("problem")[0].message or "")
        since = len(told.events)
        (home / "more/c.md").write_text("# C\n\nan okapi\n")
        shutil.copy(other, home / "state/kb.sqlite")
        told.wait_for(lambda: told.of("synced", since=since))
        assert keeper.is_leader
        assert kb.freshness().leader
        assert kb.freshness().notices == ()
        assert [hit.file for hit in kb.search("okapi").hits] == ["more/c.md"]
        (home / "more/d.md").write_text("# D\n\na bongo\n")
        told.wait_for(lambda: kb.search("bongo").hits)
        assert len(told.of("problem")) == 1
    assert [each.name for each in files_of(home / "state/kb.sqlite")] == ["kb.sqlite"]


def test_a_lock_that_is_deleted_is_taken_anew(home: Path) -> None:
    """Else two processes would keep one index."""
    lock = home / "state/kb.sqlite.lock"
    with KnowledgeBase.open(home / "state/kb.sqlite") as kb:
        told = Told(kb)
        kb.keep(embed=False, polling=POLLING, poll_s=0.1)
        told.wait_for(lambda: told.of("synced"))
        lock.unlink()
        until(lock.exists)
        until(lambda: kb.freshness().leader)


def test_a_watch_goes_on_with_the_new_file(tmp_path: Path) -> None:
    scratch = filled(tmp_path)
    database = scratch.database
    watch = scratch.start("watch", "--json", "--no-embed", stdout=subprocess.PIPE)

    def wait_for(kind: str) -> dict[str, str]:
        assert watch.stdout is not None
        for line in watch.stdout:
            event: dict[str, str] = json.loads(line)
            if event["kind"] == kind:
                return event
        raise AssertionError(f"the watch ended before any event was {kind!r}")

    try:
        wait_for("synced")
        for file in files_of(database):
            file.unlink()
        assert "was deleted or moved" in wait_for("problem")["message"]
        assert scratch.run("collection", "add", str(scratch.root / "notes")).code == 0
        wait_for("synced")
        (scratch.root / "notes/new.md").write_text("# New\n")
        while wait_for("added")["path"] != "new.md":
            pass
    finally:
        watch.kill()
        watch.communicate()


@pytest.mark.parametrize("options", [(), ("--no-watch",)])
@pytest.mark.unmeasured
def test_a_server_says_so_and_goes_on_with_the_new_file(
    home: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    database = home / "state/kb.sqlite"
    program = [sys.executable, "-m", "qmd", "--db", str(database), "server", "--port", "0"]
    with RawClient([*program, *options], tmp_path / "stderr") as client:
        client.handshake()
        until(lambda: "url=" in client.stderr)
        found = re.search(r"url=(\S+)", client.stderr)
        assert found is not None
        url = found[1]

        def health() -> str:
            answer = request(url, "GET", "/health")
            assert (answer.status == 200) == (answer.json()["status"] == "healthy")
            return str(answer.json()["status"])

        assert not client.tool("create_note", path=NOTE, content="first\n")["isError"]
        assert health() == "healthy"
        delete_all(home)
        for _ in range(3):
            reply = client.tool("create_note", path=NOTE, content="second\n")
            assert reply["isError"]
            assert "was deleted or moved while it was open" in reply["content"][0]["text"]
            assert health() == "unhealthy"
            status = request(url, "GET", "/status")
            assert status.status == 503
            assert "was deleted or moved" in status.json()["detail"]
            assert client.tool("status")["isError"]
        assert text(home) == "first\n"
        assert client.stderr.count("was deleted or moved") == 1, client.stderr

        make(database, home / "notes")
        assert health() == "healthy"
        reply = client.tool("create_note", path=NOTE, content="an okapi\n")
        assert not reply["isError"], reply
        assert kept(database, home) == [b"first\n"]
        hits = request(url, "POST", "/search", {"query": "okapi"}).json()["results"]
        assert [hit["file"] for hit in hits] == ["notes/plan.md"]
        if not options:  # and what changes on the disk is found again
            (home / "notes/new.md").write_text("# New\n\na bongo\n")
            until(lambda: request(url, "POST", "/search", {"query": "bongo"}).json()["results"])
        assert client.stderr.count("was deleted or moved") == 1, client.stderr


# --- a process that ends soon ----------------------------------------------------------


def test_a_command_whose_database_goes_meanwhile_ends_with_an_error(home: Path) -> None:
    """The content is asked for in the middle of the write."""
    read, write = os.pipe()
    scratch = Scratch(home / "scratch")
    command = scratch.start(
        *("--db", str(home / "state/kb.sqlite"), "note", "create", NOTE, "-"),
        stdin=read,
        stderr=subprocess.PIPE,
    )
    os.close(read)
    os.write(write, b"text")
    delete_all(home)
    os.close(write)
    _, error = command.communicate(timeout=60)
    assert command.returncode == 1
    assert b"database" in error
    assert text(home) == "# Plan\n\na zebra\n"
