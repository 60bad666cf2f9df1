"""Processes on several machines with one database on a server."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.cli.render_reports import render_status
from qmd.errors import ConflictError
from qmd.health import doctor
from qmd.ingest.keep import freshness
from qmd.store import open_store
from qmd.system import clock
from qmd.values.chats import StoredTurn
from qmd.values.location import ServerDatabase
from tests.support import child
from tests.support.live import until
from tests.support.postgres import PostgresServer

#: Names itself and waits to be killed.
PRESENT = """
import sys
from qmd.store import open_store
from qmd.values.location import ServerDatabase
store = open_store(ServerDatabase(sys.argv[1]))
print(store.process_name(), flush=True)
sys.stdin.read()
"""


def test_the_turn_of_a_killed_process_ends_and_that_of_a_running_one_goes_on(
    postgres_database: ServerDatabase,
) -> None:
    with child.start(PRESENT, postgres_database.url) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        turn = StoredTurn(1, "When?", "", "running", clock.now(), 0.0, name, "[]", "[]")
        with KnowledgeBase(open_store(postgres_database)) as kb:
            kb.begin_chat_turn("c", "When?", "read", turn)
            assert kb.end_abandoned_turns() == 0
            with pytest.raises(ConflictError, match="Another process answers"):
                kb.begin_chat_turn("c", "Why?", "read", replace(turn, question="Why?"))
            process.kill()
            process.wait(child.WAIT_S)
            until(kb.end_abandoned_turns, "the server sees the end of its connection")
            assert kb.chat("c").turns[0].status == "interrupted"
            kb.begin_chat_turn("c", "When?", "read", turn)  # tried again


def test_a_process_is_there_although_its_connections_were_lost(
    postgres_database: ServerDatabase, postgres_server: PostgresServer
) -> None:
    with (
        closing(open_store(postgres_database)) as store,
        closing(open_store(postgres_database)) as other,
    ):
        name = store.process_name()
        postgres_server.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            f" WHERE datname = '{postgres_database.name}'"
        )
        assert store.has_process(name)
        assert not other.has_process(name)  # it cannot know
        assert store.process_name() == name
        assert other.has_process(name)


def test_temporary_files_of_other_machines_are_left_to_them(
    postgres_database: ServerDatabase, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    shared = tmp_path / ".shared.tmp"
    shared.touch()
    paths = {str(tmp_path / ".ours.tmp"): socket.gethostname()}
    paths |= {str(tmp_path / ".theirs.tmp"): "elsewhere", str(shared): "elsewhere"}
    with closing(open_store(postgres_database)) as store:
        for path in paths:
            store.write(lambda writer, path=path: writer.pending.begin(path))
        for path, machine in paths.items():
            postgres_server.execute(
                f"UPDATE z_pending_writes SET machine = '{machine}' WHERE temporary = '{path}'",
                postgres_database.name,
            )
        with store.reading() as reader:
            visible = reader.pending.in_directory(str(tmp_path))
        assert sorted(visible) == [str(tmp_path / ".ours.tmp"), str(shared)]
    KnowledgeBase.open(postgres_database).close()
    assert postgres_server.execute(
        "SELECT temporary FROM z_pending_writes", postgres_database.name
    ) == [(str(tmp_path / ".theirs.tmp"),)]


def test_who_keeps_the_index_is_told_with_its_machine_and_when_it_was_heard_of(
    postgres_database: ServerDatabase,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(freshness, "HEARTBEAT_S", 0.0)
    with (
        KnowledgeBase.open(postgres_database) as kb,
        closing(open_store(postgres_database)) as store,
    ):
        keeper = kb.keep(embed=False)
        until(lambda: freshness.read_freshness(store).keeper)
        fresh = freshness.read_freshness(store)
        here = f"process {os.getpid()} on {socket.gethostname()}"
        assert (fresh.keeper, fresh.notices) == (here, ())
        assert kb.freshness().keeper == here
        first = fresh.keeper_heard_of
        assert first is not None
        until(lambda: (freshness.read_freshness(store).keeper_heard_of or "") > first)
        render_status(kb.status(), freshness.read_freshness(store))
        assert f"Kept by    {here}, heard of 2" in capsys.readouterr().out
        # As if it had been stopped: it keeps its lock and says nothing.
        monkeypatch.setattr(freshness, "SILENCE_S", -1.0)
        silent = freshness.read_freshness(store)
        assert f"The index is kept by {here}, which has not been heard of" in silent.notices[0]
        checks = [check for check in doctor.keeping_checks(store) if check.name == "keeper"]
        assert [check.status for check in checks] == ["ok", "warning"]
        assert checks[0].message.startswith(f"Process {here[8:]} keeps the index")
        keeper.stop()
        assert freshness.read_freshness(store).keeper is None
