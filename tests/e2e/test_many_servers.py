"""Three servers, as if on three machines, with one database in PostgreSQL: real processes."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from support.http_server import Serving, qmd_server
from support.model_server import Call, ModelServer

from qmd import KnowledgeBase
from qmd.store import open_store
from qmd.values.location import ServerDatabase
from tests.support.live import put, until
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9")

WAIT_S = 60
NAMES = ("a", "b", "c")
#: More than two servers claim at once, so that a third has some to claim.
NEW_NOTES = 80


class Models:
    """The embedding server of all, which knows by the path of a request which server asks."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []
        self.hung = threading.Event()
        self._lock = threading.Lock()
        self._first: threading.Barrier | None = None
        self._hanging: str | None = None
        self._freed = threading.Event()

    def compute_together(self, servers: int) -> None:
        """Answer nobody before so many ask."""
        self._first = threading.Barrier(servers)

    def hang(self, name: str) -> None:
        """
        Give one server no answer about late notes until `free`; ``hung`` is set when it waits.

        The others are answered from then on, so that they cannot embed all before.
        """
        self._hanging = name

    def free(self) -> None:
        self._hanging = None
        self._freed.set()

    def __call__(self, call: Call) -> None:
        name = call.request.path.split("/")[1]
        texts: list[str] = call.request.body["input"]
        if self._hanging and any("late text" in text for text in texts):
            if name == self._hanging:
                self.hung.set()
                self._freed.wait(WAIT_S)
                call.reset()
                return
            self.hung.wait(WAIT_S)
        with self._lock:
            self.texts += [(name, text) for text in texts if "Shared" in text]
            first = self._first if len(texts) > 1 else None
        if first is not None and not first.broken:
            first.wait(WAIT_S)
            self._first = None
        rows = [[1.0 + hashlib.sha256(text.encode()).digest()[0], *[1.0] * 15] for text in texts]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        call.answer_json({"data": data})


class Events:
    """The events that a server sends from now on."""

    def __init__(self, server: Serving) -> None:
        address = urlsplit(server.url)
        self._connection = http.client.HTTPConnection(address.netloc, timeout=WAIT_S)
        self._connection.request("GET", "/events")
        self._response = self._connection.getresponse()
        assert self._response.readline() == b": qmd\n"

    def next(self, *kinds: str) -> dict[str, Any]:
        """The next event of some kinds."""
        while True:
            line = self._response.readline()
            assert line, "the server ended"
            if line.startswith(b"event: ") and line[7:-1].decode() in kinds:
                event: dict[str, Any] = json.loads(self._response.readline()[6:])
                return event

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Cluster:
    """Servers with one database and one folder."""

    def __init__(self, root: Path, database: ServerDatabase, models: ModelServer) -> None:
        self.notes = root / "notes"
        self.servers: dict[str, Serving] = {}
        self._root = root
        self._database = database
        self._models = models

    def start(self, name: str) -> None:
        """Start a server whose machine has a name; its user's folders are not the others'."""
        home = self._root / name
        environment = {
            **os.environ,
            "QMD_MODEL": "openai:tiny",
            "QMD_EMBED_URL": f"{self._models.url.removesuffix('/v1')}/{name}/v1",
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(home / "run"),
        }
        url = self._database.url
        self.servers[name] = qmd_server(url, environment=environment)

    def keeper(self) -> str:
        """The server that keeps the index now."""
        keepers: list[str] = []

        def look() -> bool:
            keepers[:] = [
                name
                for name, server in self.servers.items()
                if b"\nqmd_keeper 1" in server.ask("GET", "/metrics").body
            ]
            return bool(keepers)

        until(look, "no server keeps the index")
        (name,) = keepers
        return name

    def others(self, name: str) -> list[Serving]:
        return [server for other, server in self.servers.items() if other != name]

    def status(self, server: Serving) -> dict[str, Any]:
        status: dict[str, Any] = server.ask("GET", "/status").json()
        return status

    def kill(self, name: str) -> None:
        server = self.servers.pop(name)
        server.stop(signal.SIGKILL)
        server.__exit__(None, None, None)


@pytest.fixture(scope="module")
def models() -> Models:
    return Models()


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, models: Models
) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cluster")
    put(root / "notes" / "plan.md", "# Plan\n\nsourdough\n")
    database = postgres_server.migrated()
    with KnowledgeBase(open_store(database)) as kb:
        kb.add_collection(root / "notes", name="notes")
        kb.index()
    with ModelServer(models) as model_server, ExitStack() as stack:
        cluster = Cluster(root, database, model_server)
        for name in NAMES:
            cluster.start(name)
        stack.callback(lambda: [s.__exit__(None, None, None) for s in cluster.servers.values()])
        stack.callback(models.free)
        yield cluster
    postgres_server.drop(database)


def test_a_change_through_one_server_arrives_at_all_others(cluster: Cluster) -> None:
    keeper = cluster.keeper()
    writer, hearer = cluster.others(keeper)
    told = [Events(cluster.servers[keeper]), Events(hearer)]

    async def use() -> list[str]:
        heard: list[str] = []

        async def listen(server: Serving, listens: anyio.Event) -> None:
            async with (
                Client(f"{server.url}/mcp", mode="2026-07-28") as client,
                client.listen(resource_subscriptions=["qmd://notes/plan.md"]) as changes,
            ):
                listens.set()
                async for change in changes:
                    heard.append(change.uri)  # type: ignore[union-attr]
                    return

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                ready = [anyio.Event(), anyio.Event()]
                for server, event in zip((cluster.servers[keeper], hearer), ready, strict=True):
                    tasks.start_soon(listen, server, event)
                for event in ready:
                    await event.wait()
                edit = {"file": "notes/plan.md", "action": "append", "text": "focaccia"}
                answer = await anyio.to_thread.run_sync(writer.ask, "POST", "/edit_note", edit)
                assert answer.status == 200, answer.body
        return heard

    assert anyio.run(use) == ["qmd://notes/plan.md"] * 2
    for events in told:
        assert events.next("updated", "added")["file"] == "notes/plan.md"
        events.close()
    for server in cluster.servers.values():
        hits = server.ask("POST", "/search", {"query": "focaccia"}).json()
        assert [hit["file"] for hit in hits["results"]] == ["notes/plan.md"]


def test_servers_embed_together_and_no_text_twice(cluster: Cluster, models: Models) -> None:
    server = next(iter(cluster.servers.values()))
    before = cluster.status(server)["total_documents"]
    models.compute_together(2)
    for number in range(NEW_NOTES):
        put(cluster.notes / f"shared {number}.md", f"# Shared {number}\n\ntext {number}\n")
    until(lambda: cluster.status(server)["total_documents"] == before + NEW_NOTES)
    until(lambda: not cluster.status(server)["needs_embedding"])
    texts = [text for _, text in models.texts]
    assert len(set(texts)) == len(texts), models.texts
    assert len({name for name, _ in models.texts}) >= 2


def test_nothing_is_lost_when_the_keeper_is_killed(cluster: Cluster, models: Models) -> None:
    keeper = cluster.keeper()
    models.hang(keeper)
    confirmed: list[str] = []

    def write() -> None:
        for number in range(1000):
            edit = {"file": "notes/plan.md", "action": "append", "text": f"line{number}x"}
            try:
                answer = killed.ask("POST", "/edit_note", edit)
            except (OSError, http.client.HTTPException):
                return
            if answer.status == 200:
                confirmed.append(f"line{number}x")

    killed, (left, other) = cluster.servers[keeper], cluster.others(keeper)
    events = Events(left)
    for number in range(NEW_NOTES):
        put(cluster.notes / f"late {number}.md", f"# Late {number}\n\nlate text {number}\n")
    assert models.hung.wait(WAIT_S)
    writing = threading.Thread(target=write)
    writing.start()
    until(lambda: len(confirmed) > 2)
    cluster.kill(keeper)
    writing.join(WAIT_S)
    put(cluster.notes / "after.md", "# After\n\npumpernickel\n")
    while events.next("added")["path"] != "after.md":
        pass
    events.close()
    assert cluster.keeper() != keeper
    until(lambda: not cluster.status(other)["needs_embedding"], "claims of the killed server")
    plan = other.ask("POST", "/get", {"file": "notes/plan.md"}).body.decode()
    assert confirmed
    assert all(line in plan for line in confirmed)
    hits = other.ask("POST", "/search", {"query": confirmed[-1]}).json()
    assert [hit["file"] for hit in hits["results"]] == ["notes/plan.md"]
    models.free()
    cluster.start(keeper)
