"""Three servers with a primary and its replica, each of which is killed: real processes."""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.http_server import WITHOUT_MODEL, Answer, Serving, qmd_server

from qmd import KnowledgeBase
from qmd.store import open_store
from qmd.values.location import ServerDatabase
from tests.support.live import put, until
from tests.support.postgres import PostgresServer

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="kill -9"),
    pytest.mark.unmeasured,  # other tests take the same branches
]

NAMES = ("a", "b", "c")
#: So many more searches and writes must succeed after each failure.
MORE = 5


class Clients:
    """One client that searches and one that writes, each at the servers in turn."""

    def __init__(self, servers: dict[str, Serving]) -> None:
        self._servers = servers
        self.confirmed: list[str] = []
        self.refused: list[Answer] = []
        self.searches = 0
        self.failed_searches: list[Answer] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._search, self._write)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a request hangs"

    def _ask(self, number: int, path: str, body: object) -> Answer | None:
        """The answer of a server; None if that is not there."""
        servers = list(self._servers.values())
        try:
            return servers[number % len(servers)].ask("POST", path, body)
        except (OSError, http.client.HTTPException):
            return None

    def _search(self) -> None:
        for number in itertools.count():
            if self._over.is_set():
                return
            answer = self._ask(number, "/search", {"query": "sourdough"})
            if answer is not None and answer.status == 200:
                assert b"notes/plan.md" in answer.body
                self.searches += 1
            elif answer is not None:
                self.failed_searches.append(answer)

    def _write(self) -> None:
        for number in itertools.count():
            if self._over.is_set():
                return
            text = f"line{number}x"
            edit = {"file": "notes/plan.md", "action": "append", "text": text}
            answer = self._ask(number, "/edit_note", edit)
            if answer is not None and answer.status == 200:
                self.confirmed.append(text)
            elif answer is not None:
                self.refused.append(answer)

    def go_on(self, *, writing: bool = True) -> None:
        """Wait until more has succeeded."""
        searches, writes = self.searches + MORE, len(self.confirmed) + MORE * writing
        until(lambda: self.searches >= searches, "searches do not go on")
        until(lambda: len(self.confirmed) >= writes, "writes do not go on")


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    server = PostgresServer(synchronous_commit="on")
    yield server
    server.remove()


@pytest.fixture
def replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    server = PostgresServer(primary, wal_retrieve_retry_interval="100ms")
    yield server
    server.remove()


@pytest.mark.nightly
def test_whatever_is_killed_searches_go_on_and_no_confirmed_write_is_lost(
    tmp_path: Path, primary: PostgresServer, replica: PostgresServer
) -> None:
    notes = tmp_path / "notes"
    put(notes / "plan.md", "# Plan\n\nsourdough\n")
    database = primary.migrated()
    with KnowledgeBase(open_store(database)) as kb:
        kb.add_collection(notes)
        kb.index()
    servers: dict[str, Serving] = {}

    def start(name: str) -> None:
        environment = {
            **os.environ,
            **WITHOUT_MODEL,
            "QMD_DB_READ": replica.url(database.name),
            "XDG_STATE_HOME": str(tmp_path / name / "state"),
            "XDG_RUNTIME_DIR": str(tmp_path / name / "run"),
        }
        servers[name] = qmd_server(database.url, environment=environment)

    try:
        for name in NAMES:
            start(name)
        clients = Clients(servers)
        clients.go_on()

        for name in NAMES:
            killed = servers.pop(name)
            killed.stop(signal.SIGKILL)
            killed.__exit__(None, None, None)
            clients.go_on()
            start(name)

        replica.kill()
        clients.go_on()
        replica.start()
        clients.go_on()

        primary.kill()
        clients.go_on(writing=False)
        until(lambda: bool(clients.refused), "writes are refused")
        primary.start()
        clients.go_on()

        for _ in range(3):
            cut(primary, database)
            cut(replica, database)
            clients.go_on()
        clients.stop()
        assert_clear(clients.refused + clients.failed_searches)
        text = servers["a"].ask("POST", "/get", {"file": "notes/plan.md"}).body.decode()
        assert [line for line in clients.confirmed if line not in text] == []
        for line in (clients.confirmed[0], clients.confirmed[-1]):
            for server in servers.values():
                hits = server.ask("POST", "/search", {"query": line}).json()["results"]
                assert [hit["file"] for hit in hits] == ["notes/plan.md"]
    finally:
        for server in servers.values():
            server.__exit__(None, None, None)


def cut(server: PostgresServer, database: ServerDatabase) -> None:
    """End all connections to a database, in the middle of what they do."""
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{database.name}' AND pid <> pg_backend_pid()"
    )


def assert_clear(answers: list[Answer]) -> None:
    """Each request that failed was told why: the database could not be reached, or is busy."""
    for answer in answers:
        assert answer.status == 503, answer.body
        assert any(
            words in answer.body for words in (b"cannot be reached", b"was lost", b"is busy")
        ), answer.body
