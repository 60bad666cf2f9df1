"""Upkeep of a large database: what it needs is said before it begins, and how far it is."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from qmd import KnowledgeBase
from qmd.errors import DiskFullError
from qmd.store.sqlite import copies, disk_space, migrate, upkeep
from qmd.store.sqlite.library import Connection, connect
from qmd.values import Progress


class Usage(NamedTuple):
    free: int


@pytest.fixture
def database(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(30):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n{'words ' * 500}\n")
    path = tmp_path / "index.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
    return path


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "LEAST_CHECKED", 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10_000))


def test_a_backup_tells_how_far_it_is(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES_AT_ONCE", 10)
    ticks: list[tuple[int, int]] = []
    with KnowledgeBase.open(database) as kb, kb._store.reading() as reader:
        size = reader.upkeep.copy_to(
            tmp_path / "copy.sqlite", replace=False, progress=lambda *tick: ticks.append(tick)
        )
        stages: list[Progress] = []
        kb.backup(tmp_path / "second.sqlite", progress=stages.append)
    assert len(ticks) > 3 and ticks == sorted(ticks)
    assert ticks[-1] == (size, size)
    assert stages[-1].stage == "backup" and stages[-1].done == stages[-1].total


def test_a_backup_in_steps_is_one_snapshot_whoever_writes(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES_AT_ONCE", 10)
    target = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database) as kb:
        written: list[int] = []

        def write(done: int, total: int) -> None:
            kb.add_context("notes", f"written after {done} bytes")
            written.append(total)

        with kb._store.reading() as reader:
            reader.upkeep.copy_to(target, replace=False, progress=write)
        assert len(written) > 3 and len(set(written)) == 1
    with KnowledgeBase.open(target) as copy:
        assert len(copy.documents()) == 30
        assert copy.contexts() == []


@pytest.mark.usefixtures("full_disk")
def test_too_little_room_is_told_before_anything_is_written(database: Path, tmp_path: Path) -> None:
    with KnowledgeBase.open(database) as kb:
        with pytest.raises(DiskFullError, match=r"A copy of the database needs \d+ MB of free"):
            kb.backup(tmp_path / "copy.sqlite")
        with pytest.raises(DiskFullError, match="Cleaning up needs"):
            kb.cleanup()
        assert len(kb.documents()) == 30
    assert not list(tmp_path.glob("*copy*"))
    with closing(connect(database, read_only=False)) as connection:
        connection.execute("DELETE FROM _sqlite_migrations WHERE name >= '0004'")
        with pytest.raises(DiskFullError, match="Bringing the database up to date needs"):
            migrate.migrate(connection, database)


@contextmanager
def statements(connection: Connection) -> Iterator[list[str]]:
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    yield seen
    connection.set_trace_callback(None)


def test_a_large_file_is_written_anew_only_if_that_gives_back_much(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "LARGE_BYTES", 1000)
    with closing(connect(database, read_only=False)) as connection:
        with statements(connection) as seen:
            upkeep.compact(connection)
        assert "VACUUM;" not in seen
        connection.execute("DELETE FROM documents WHERE id > 3")
        with statements(connection) as seen:
            upkeep.compact(connection)
        assert "VACUUM;" in seen


ENDLESS = """
import signal
import sys
import threading
from qmd.store import open_store
from qmd.values.location import database_location
location, when = sys.argv[1:]
store = open_store(database_location(location))
runs = threading.Event()
def write(writer):
    writer.meta.put("before", "the statement")
    print("it runs", flush=True)
    runs.set()
    statement = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    writer.connection.execute(f"{statement} SELECT count(*) FROM n").fetchone()
def interrupt_before_it_is_waited_for(frame, event, _):
    if event == "return" and frame.f_code.co_name == "submit":
        sys.setprofile(None)
        runs.wait()
        signal.raise_signal(signal.SIGINT)
if when == "before it is waited for":
    sys.setprofile(interrupt_before_it_is_waited_for)
try:
    store.write(write)
except KeyboardInterrupt:
    print("interrupted")
with store.reading() as reader:
    print(reader.meta.get("before"))
store.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("when", ["before it is waited for", "while it is waited for"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_ctrl_c_ends_a_statement_that_takes_long(
    engine: str, when: str, request: pytest.FixtureRequest
) -> None:
    location = (
        request.getfixturevalue("database")
        if engine == "sqlite"
        else request.getfixturevalue("postgres_database").url
    )
    command = [sys.executable, "-c", ENDLESS, str(location), when]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "it runs\n"
        if when == "while it is waited for":
            process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=60)[0] == "interrupted\nNone\n"
        finally:
            process.kill()


def test_compacting_does_not_wait_for_a_program_that_always_reads_the_log(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "LOG_PATIENCE_MS", 1)
    with (
        closing(connect(database, read_only=False, timeout=60.0)) as connection,
        closing(connect(database, read_only=True)) as replica,
    ):
        connection.execute("UPDATE collections SET pattern = pattern")
        replica.execute("BEGIN")
        replica.execute("SELECT count(*) FROM documents").fetchone()
        with statements(connection) as seen:
            upkeep.compact(connection)
        assert "PRAGMA wal_checkpoint(PASSIVE)" in seen
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
