"""More connections than the process may have descriptors: no storm of logs, and it recovers."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest
from support.http_server import WAIT_S, Serving, qmd_server
from support.vault import make_index

from qmd.server.http import MAX_CONNECTIONS, MIN_CONNECTIONS, SILENT_S

resource = pytest.importorskip("resource")
CLIENTS = 200


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_index(tmp_path)


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def connected(clients: ExitStack, url: str, number: int) -> list[socket.socket]:
    address = urlsplit(url)
    return [
        clients.enter_context(socket.create_connection((address.hostname, address.port), WAIT_S))
        for _ in range(number)
    ]


def answered(serving: Serving) -> int:
    """The status of a request once the server has room for it, or 503 after `WAIT_S` seconds."""
    deadline = monotonic() + WAIT_S
    while monotonic() < deadline:
        try:
            status = serving.ask("GET", "/status").status
        except OSError:  # refused, and the answer was lost
            continue
        if status != 503:
            return status
    return 503


def test_many_more_connections_than_descriptors(database: Path, clients: ExitStack) -> None:
    few = f"ulimit -n 64; exec {sys.executable} -m qmd --db {database} server --port 0"
    with Serving(["bash", "-c", f"{few} --transport http --no-watch"]) as serving:
        held = connected(clients, serving.url, CLIENTS)
        assert answered(serving) == 200  # the silent ones make room
        assert serving.ask("POST", "/search", {"query": "boat"}).status == 200
        clients.close()
        assert answered(serving) == 200
        assert len(held) == CLIENTS
        assert len(serving.stderr.splitlines()) <= 3, serving.stderr[:2000]
        assert serving.stop() == 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone has prlimit")
def test_without_any_descriptor_clients_are_told_and_the_log_hears_of_it_once(
    database: Path, clients: ExitStack
) -> None:
    with qmd_server(database, "--no-watch") as serving:
        url, pid = serving.url, serving.process.pid
        assert serving.ask("GET", "/status").status == 200
        used = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(used) + 1, limits[1]))
        free = max(used) + 1 - len(used)
        late = connected(clients, url, free + 50)
        late[-1].settimeout(WAIT_S)
        assert late[-1].recv(1000).startswith(b"HTTP/1.1 503 ")
        serving.says("may open no more files")
        assert serving.stderr.count("may open no more files") == 1
        assert "system resource" not in serving.stderr
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        clients.close()
        assert answered(serving) == 200
        assert serving.stop() == 0


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (40, MIN_CONNECTIONS),
        (256, 208),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [(100, 52), (1024, MAX_CONNECTIONS)]
        ),
    ],
)
def test_the_limit_of_connections_leaves_descriptors_for_the_rest(limit: int, most: int) -> None:
    program = "from qmd.server.http import max_connections; print(max_connections())"
    command = f"ulimit -n {limit} && exec {sys.executable} -c '{program}'"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=WAIT_S)
    assert int(ran.stdout) == most


def test_silent_connections_make_room_for_new_ones(database: Path, clients: ExitStack) -> None:
    """Slow headers included: a client that fills all places does not keep others out."""
    with qmd_server(database, "--no-watch") as serving:
        for client in connected(clients, serving.url, MAX_CONNECTIONS + 20):
            try:
                client.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            except OSError:  # one of the twenty
                continue
        assert SILENT_S <= 1
        assert answered(serving) == 200
