"""How a server process starts, what it leaves behind, and every way it ends."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.http_server import (
    MCP_ACCEPT,
    WAIT_S,
    Serving,
    initialize,
    mcp_message,
    qmd_server,
    request,
)
from support.mcp_client import RawClient
from support.vault import make_index

from qmd.system import running

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

posix = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")

Start = Callable[..., Serving]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_index(tmp_path)


@pytest.fixture
def start(database: Path) -> Iterator[Start]:
    started: list[Serving] = []

    def begin(*options: str, **settings: Any) -> Serving:
        serving = qmd_server(database, *options, **settings)
        started.append(serving)
        return serving

    yield begin
    for serving in started:
        serving.__exit__(None, None, None)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


# --- signals -------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 0, marks=pytest.mark.cold), (signal.SIGINT, 130)],
)
def test_a_signal_ends_it_with_nothing_on_stdout(
    start: Start, number: signal.Signals, code: int
) -> None:
    server = start()
    assert server.ask("GET", "/health").status == 200
    assert server.stop(number) == code
    assert server.stdout() == b""
    assert "Traceback" not in server.stderr


@posix
def test_open_event_streams_do_not_hold_up_the_end(start: Start) -> None:
    server = start()
    accept = {"accept": MCP_ACCEPT}
    session = request(server.url, "POST", "/mcp", initialize(), accept).headers["mcp-session-id"]
    arrived: queue.SimpleQueue[int] = queue.SimpleQueue()
    ended: list[bytes] = []

    def read(path: str, headers: dict[str, str]) -> None:
        parts = urlsplit(server.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
        with closing(connection):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            arrived.put(response.status)
            ended.append(response.read())

    streams = [
        threading.Thread(
            target=read, args=("/mcp", {"accept": "text/event-stream", "mcp-session-id": session})
        ),
        *(threading.Thread(target=read, args=("/events", {})) for _ in range(3)),
    ]
    for stream in streams:
        stream.start()
    assert [arrived.get(timeout=WAIT_S) for _ in streams] == [200] * 4
    assert server.stop() == 0
    for stream in streams:
        stream.join(WAIT_S)
    assert len(ended) == 4
    assert "Still busy" not in server.stderr


SLOW = """
import sys, threading
sys.path.insert(0, sys.argv[2])
from support.embedder import HashEmbedder
from qmd import KnowledgeBase, Settings
from qmd.server.process import ServerOptions, serve

class SlowModel(HashEmbedder):
    def embed_query(self, text):
        print("asked", file=sys.stderr, flush=True)
        if text == "stuck":
            threading.Event().wait()
        sys.stdin.readline()
        return super().embed_query(text)

def open_kb():
    kb = KnowledgeBase.open(sys.argv[1], Settings(embedder=SlowModel()))
    kb.embed()
    return kb

sys.exit(serve(open_kb, ServerOptions(transport="http", port=0, watch=False)))
"""


@pytest.fixture
def slow(database: Path) -> Iterator[Serving]:
    """A server whose model answers when a line comes on stdin."""
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", SLOW, str(database), tests]
    with Serving(command, stdin=subprocess.PIPE) as server:
        yield server


@posix
def test_an_answer_that_is_owed_is_given_before_the_end(slow: Serving) -> None:
    answers: list[int] = []
    url = slow.url
    asking = threading.Thread(
        target=lambda: answers.append(
            request(url, "POST", "/vsearch", {"query": "boat", "min_score": 0}).status
        )
    )
    asking.start()
    slow.says("asked")
    slow.process.send_signal(signal.SIGTERM)
    assert slow.process.stdin is not None
    slow.process.stdin.write(b"go on\n")
    slow.process.stdin.flush()
    asking.join(WAIT_S)
    assert answers == [200]
    assert slow.process.wait(WAIT_S) == 0


@posix
def test_a_second_signal_ends_it_at_once(slow: Serving) -> None:
    url = slow.url
    body = json.dumps({"query": "stuck"}).encode()
    address = url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), WAIT_S) as client:
        client.sendall(
            b"POST /vsearch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        slow.says("asked")
        slow.process.send_signal(signal.SIGTERM)
        while running.find(Path(slow.process.args[3])) is not None:  # type: ignore[index]
            pass
        assert slow.stop() == 128 + signal.SIGTERM


# --- stdin beside HTTP ---------------------------------------------------------------


def speak(server: Serving, *messages: dict[str, Any]) -> None:
    assert server.process.stdin is not None
    for message in messages:
        server.process.stdin.write(json.dumps(message).encode() + b"\n")
    server.process.stdin.flush()


@pytest.mark.cold
def test_both_transports_answer_in_one_process_until_the_input_ends(start: Start) -> None:
    server = start(transport="both", stdin=subprocess.PIPE)
    assert server.ask("POST", "/search", {"query": "boat"}).status == 200
    search = {"name": "search", "arguments": {"query": "boat"}}
    speak(server, initialize(), mcp_message("tools/call", search, 2))
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(WAIT_S) == 0
    lines = [json.loads(line) for line in server.stdout().splitlines()]
    assert [line["id"] for line in lines] == [1, 2]
    assert lines[1]["result"]["structuredContent"]["results"][0]["file"] == "notes/2025/plan.md"


@posix
def test_without_a_client_on_stdin_http_goes_on(start: Start) -> None:
    server = start(transport=None)
    assert server.ask("GET", "/health").status == 200
    assert server.ask("GET", "/health").status == 200
    assert server.stop() == 0


def test_a_taken_port_leaves_stdin_and_stdout_served(start: Start, taken: int) -> None:
    server = start(transport="both", stdin=subprocess.PIPE, port=taken)
    speak(server, initialize())
    assert server.process.stdout is not None
    assert json.loads(server.process.stdout.readline())["result"]["serverInfo"]["name"] == "qmd"
    server.says(f"Port {taken} on 127.0.0.1 is in use")
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(WAIT_S) == 0


def test_a_taken_port_is_an_error_where_there_is_nothing_else(start: Start, taken: int) -> None:
    server = start(port=taken)
    assert server.process.wait(WAIT_S) == 1
    assert f"qmd: error: Port {taken} on 127.0.0.1 is in use." in server.stderr
    assert "hint: " in server.stderr and "--port" in server.stderr


def test_a_port_taken_by_this_databases_server_is_told_so(start: Start) -> None:
    first = start()
    port = int(first.url.rpartition(":")[2])
    second = start(port=port)
    assert second.process.wait(WAIT_S) == 1
    assert f"(process {first.process.pid})" in second.stderr


def test_mcp_takes_the_options_of_server(database: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qmd", "--db", str(database), "mcp"]
    options = ["--no-watch", "--read-only", "--toolset", "qmd", "--log-format", "json"]
    with RawClient([*command, *options], tmp_path / "stderr") as client:
        client.handshake()
        assert client.tool("search", query="boat")["structuredContent"]["results"]


# --- who may ask, and how others find it ----------------------------------------------


def test_an_address_that_others_reach_demands_a_token(start: Start) -> None:
    server = start("--host", "0.0.0.0")
    assert server.process.wait(WAIT_S) == 1
    assert "demands a token" in server.stderr
    assert "QMD_TOKEN" in server.stderr


def test_with_a_token_every_route_but_health_asks_for_it(start: Start, database: Path) -> None:
    environment = {**os.environ, "QMD_TOKEN": "s3cret"}
    server = start("--host", "0.0.0.0", environment=environment)
    assert server.ask("GET", "/health").status == 200
    for method, path in [("GET", "/"), ("GET", "/status"), ("POST", "/mcp"), ("GET", "/nope")]:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret"}):
            answer = request(server.url, method, path, None, headers)
            assert answer.status == 401, path
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert set(answer.json()) == {"detail", "status_code"}
    assert server.ask("GET", "/status", authorization="Bearer s3cret").status == 200
    foreign = {"authorization": "Bearer s3cret", "host": "evil.example"}
    assert request(server.url, "GET", "/status", None, foreign).status == 403
    by_address = {"authorization": "Bearer s3cret", "host": "192.0.2.7:18765"}
    assert request(server.url, "GET", "/status", None, by_address).status == 200
    known = running.find(database)
    assert known is not None
    assert known.token == "s3cret"
    assert "s3cret" not in server.stderr


@posix
def test_it_can_be_found_while_it_runs_and_no_longer(start: Start, database: Path) -> None:
    server = start()
    assert server.ask("GET", "/health").status == 200
    entry = running.file_for(database)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    found = running.find(database)
    assert found is not None
    assert (found.url, found.pid) == (server.url, server.process.pid)
    assert server.stop() == 0
    assert not entry.exists()


@posix
def test_what_a_killed_server_left_behind_misleads_nobody(start: Start, database: Path) -> None:
    first = start()
    assert first.ask("GET", "/health").status == 200
    first.process.kill()
    first.process.wait(WAIT_S)
    assert running.file_for(database).exists()
    assert running.find(database) is None
    second = start()
    assert second.ask("GET", "/health").status == 200
    found = running.find(database)
    assert found is not None
    assert found.pid == second.process.pid


# --- what it says --------------------------------------------------------------------


@posix
def test_json_logs_are_one_object_a_line_without_what_was_asked(start: Start) -> None:
    server = start("--log-format", "json", "--access-log")
    url = server.says(r'"url": "(http://[^"]+)"')[1]
    request(url, "POST", "/search", {"query": "sourdough"})
    request(url, "GET", "/nope?query=sourdough")
    request(url, "POST", "/search", b"{sourdough")
    assert server.stop() == 0
    records = [json.loads(line) for line in server.stderr.splitlines()]
    seen = [(r["method"], r["path"], r["status"]) for r in records if r["message"] == "request"]
    assert seen == [("POST", "/search", 200), ("GET", "/nope", 404), ("POST", "/search", 400)]
    assert "sourdough" not in server.stderr
    assert all(re.match(r"\d{4}-\d\d-\d\dT", record["time"]) for record in records)


def test_a_read_only_server_makes_an_empty_database_and_no_more(tmp_path: Path) -> None:
    database = tmp_path / "none.sqlite"
    with qmd_server(database, "--read-only") as server:
        assert server.ask("GET", "/status").json()["total_documents"] == 0
        new = {"name": "x", "path": str(tmp_path)}
        assert server.ask("POST", "/collections/add", new).status == 403


def test_a_read_only_server_reads(start: Start) -> None:
    server = start("--read-only")
    assert server.ask("POST", "/search", {"query": "boat"}).status == 200
    assert server.ask("POST", "/index", {}).status == 403
