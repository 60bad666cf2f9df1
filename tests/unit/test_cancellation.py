"""Work that nobody waits for any more ends: statements, loops, and nothing that writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from support.slow import ENDLESS, WAIT_S, SlowKnowledgeBase
from support.vault import make_index

from qmd import KnowledgeBase
from qmd.errors import RequestEndedError
from qmd.server.workers import CallQueue
from qmd.store import Store, open_store
from qmd.system import cancellation
from qmd.system.cancellation import Cancellation
from tests.support import writes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "db.sqlite", create=True)
    yield opened
    opened.close()


def read_for_ever(store: Store, begun: threading.Event) -> None:
    with store.reading() as reader:
        begun.set()
        reader.connection.execute(ENDLESS).fetchone()


def test_a_statement_of_a_late_call_is_interrupted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = CallQueue(1, max_waiting=1)
    begun = threading.Event()

    async def run() -> int:
        loop = asyncio.get_running_loop()
        endless = workers.run(lambda: read_for_ever(store, begun), timeout_s=WAIT_S)
        call = asyncio.ensure_future(endless)
        assert await anyio.to_thread.run_sync(begun.wait, WAIT_S)
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + WAIT_S)  # its time is up
        with pytest.raises(TimeoutError):
            await call
        # The only place is free again: the thread has ended, and with it the statement.
        return await workers.run(lambda: 7, timeout_s=WAIT_S)

    assert anyio.run(run) == 7
    assert workers.wait_until_idle(WAIT_S)
    with store.reading() as reader:
        assert reader.connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_of_a_cancelled_call_is_interrupted(store: Store) -> None:
    workers = CallQueue(1, max_waiting=1)
    begun = threading.Event()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                await workers.run(lambda: read_for_ever(store, begun), timeout_s=WAIT_S)

            tasks.start_soon(ask)
            assert await anyio.to_thread.run_sync(begun.wait, WAIT_S)
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(workers.wait_until_idle, WAIT_S)

    anyio.run(run)


def test_statements_that_follow_each_other_end_too(store: Store) -> None:
    """An interrupt between two statements stops neither: the next one does not begin."""
    workers = CallQueue(1, max_waiting=1)

    def many() -> None:
        with store.reading() as reader:
            while True:
                reader.connection.execute("SELECT 1").fetchone()

    async def run() -> bool:
        with pytest.raises(TimeoutError):
            await workers.run(many, timeout_s=0.05)
        return await anyio.to_thread.run_sync(workers.wait_until_idle, WAIT_S)

    assert anyio.run(run)


def test_a_loop_that_looks_ends(store: Store) -> None:
    workers = CallQueue(1, max_waiting=1)

    def loop() -> None:
        while True:
            cancellation.check()

    async def run() -> bool:
        with pytest.raises(TimeoutError):
            await workers.run(loop, timeout_s=0.05)
        return await anyio.to_thread.run_sync(workers.wait_until_idle, WAIT_S)

    assert anyio.run(run)


def test_what_was_cancelled_reads_nothing_more(store: Store) -> None:
    cancelled = Cancellation()
    with cancelled.active():
        with store.reading() as reader:
            assert reader.connection.execute("SELECT 1").fetchone() == (1,)
        cancelled.cancel()
        with pytest.raises(RequestEndedError), store.reading():
            pass
    with store.reading() as reader:  # another call's work
        assert reader.connection.execute("SELECT 1").fetchone() == (1,)


def test_an_interrupted_connection_is_not_used_again(store: Store) -> None:
    cancelled = Cancellation()
    with cancelled.active(), pytest.raises(RequestEndedError), store.reading() as reader:
        timer = threading.Timer(0.05, cancelled.cancel)
        timer.start()
        reader.connection.execute(ENDLESS).fetchone()
    timer.join(WAIT_S)
    with store.reading() as other:
        assert other.connection is not reader.connection


def test_a_write_is_whole_whatever_is_cancelled_meanwhile(store: Store) -> None:
    cancelled = Cancellation()

    def write(connection: object) -> None:
        store_connection = store._writing()
        store_connection.execute("INSERT INTO z_meta VALUES ('a', '1')")
        cancelled.cancel()
        store_connection.execute("INSERT INTO z_meta VALUES ('b', '2')")

    with cancelled.active():
        store.write(write)
    with store.reading() as reader:
        rows = reader.connection.execute(
            "SELECT key FROM z_meta WHERE key IN ('a', 'b') ORDER BY key"
        )
        assert rows.fetchall() == [("a",), ("b",)]


def test_a_note_is_written_and_indexed_whole_once_it_has_begun(tmp_path: Path) -> None:
    cancelled = Cancellation()
    with KnowledgeBase.open(make_index(tmp_path)) as kb, cancelled.active():
        folder = Path(kb.collection("notes").path)

        def behind(present: bytes | None) -> bytes:
            cancelled.cancel()  # in the middle of the change
            return b"# Quartz\n\nmalachite\n"

        written = writes.append(kb.files, folder / "quartz.md", behind, tool="test")
        assert written.problem is None
        with pytest.raises(RequestEndedError):
            kb.search("malachite")
        with cancellation.uninterrupted():
            assert [hit.path for hit in kb.search("malachite").hits] == ["quartz.md"]
        with pytest.raises(RequestEndedError):  # and the next change does not begin
            writes.write(kb.files, folder / "never.md", b"x", tool="test")
    assert not (folder / "never.md").exists()


def test_an_index_run_ends_between_files_and_keeps_what_it_has(tmp_path: Path) -> None:
    cancelled = Cancellation()
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number}.md").write_text(f"# Note {number}\n")
    with KnowledgeBase.open(tmp_path / "db.sqlite", create=True) as kb:
        kb.add_collection(folder)

        def tick(progress: object) -> None:
            if getattr(progress, "done", 0) == 300:
                cancelled.cancel()

        with cancelled.active(), pytest.raises(RequestEndedError):
            kb.index(progress=tick)
        assert 0 < kb.status().total_documents < 600
        kb.index()
        assert kb.status().total_documents == 600


def test_the_endless_search_of_these_tests_is_one(tmp_path: Path) -> None:
    cancelled = Cancellation()
    with SlowKnowledgeBase.open(make_index(tmp_path)) as kb:
        threading.Timer(0.05, cancelled.cancel).start()
        with cancelled.active(), pytest.raises(RequestEndedError):
            kb.search("anything")
