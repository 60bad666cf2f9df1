"""Another user of this machine meets a server that is not theirs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import child
from support.cli import Scratch
from support.http_server import (
    MCP_ACCEPT,
    WITHOUT_MODEL,
    Answer,
    Serving,
    initialize,
    qmd_server,
)
from support.vault import make_index

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

if sys.platform != "linux":
    pytest.skip("only Linux tells the user of a peer", allow_module_level=True)

Start = Callable[..., Serving]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("others"))


@pytest.fixture
def start(database: Path) -> Iterator[Start]:
    started: list[Serving] = []

    def begin(*options: str, **settings: Any) -> Serving:
        serving = qmd_server(database, "--no-watch", *options, **settings)
        started.append(serving)
        return serving

    yield begin
    for serving in started:
        serving.__exit__(None, None, None)


ASK = """
url, requests = json.loads(sys.argv[1])
host, port = url.removeprefix("http://").rsplit(":", 1)
for method, path, body, headers in requests:
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=60)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    event_stream = response.getheader("content-type", "").startswith("text/event-stream")
    text = "" if event_stream else response.read().decode()
    print(json.dumps([response.status, dict(response.getheaders()), text]))
    connection.close()
"""


def ask_as(
    uid: int, url: str, *requests: tuple[str, str, object], headers: dict[str, str] | None = None
) -> list[Answer]:
    """The answers that a process of another user gets; event streams are left at once."""
    sent = [
        (
            method,
            path,
            None if body is None else json.dumps(body),
            {"content-type": "application/json", "accept": MCP_ACCEPT, **(headers or {})},
        )
        for method, path, body in requests
    ]
    lines = child.as_user(uid, ASK, json.dumps([url, sent])).splitlines()
    found = [json.loads(line) for line in lines]
    return [
        Answer(status, {name.lower(): value for name, value in names.items()}, text.encode())
        for status, names, text in found
    ]


EVERYWHERE: list[tuple[str, str, object]] = [
    ("GET", "/", None),
    ("GET", "/health", None),
    ("GET", "/status", None),
    ("GET", "/openapi.json", None),
    ("GET", "/events", None),
    ("GET", "/nope", None),
    ("POST", "/search", {"query": "boat"}),
    ("POST", "/contexts/add", {"path": "/", "text": "by a stranger"}),
    ("POST", "/mcp", initialize()),
    ("OPTIONS", "/search", None),
]


def test_another_user_is_refused_on_every_route_and_told_what_would_help(start: Start) -> None:
    server = start()
    for answer in ask_as(child.OTHER_USER, server.url, *EVERYWHERE):
        assert answer.status == 403
        assert set(answer.json()) == {"detail", "status_code"}
        assert "Another user's server" in answer.json()["detail"]
        assert "--token" in answer.json()["detail"]
        assert "--allow-other-users" in answer.json()["detail"]
    assert server.ask("POST", "/search", {"query": "boat"}).status == 200
    assert "by a stranger" not in server.ask("GET", "/contexts").body.decode()


@pytest.mark.parametrize("host", ["::1", "localhost", "127.0.0.2"])
def test_whatever_address_of_this_machine_it_listens_on(start: Start, host: str) -> None:
    server = start("--host", host, "--allow-host", "127.0.0.2")
    [answer] = ask_as(child.OTHER_USER, server.url, ("GET", "/status", None))
    assert answer.status == 403
    assert server.ask("GET", "/status").status == 200


def as_other_user(command: Sequence[str]) -> list[str]:
    """A command line that runs as another user, who may read what root may (Python itself)."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can start a server as another user")
    user = str(child.OTHER_USER)
    reading = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *reading]
    if shutil.which("setpriv") is None or subprocess.call([*switch, "true"]) != 0:
        pytest.skip("NOT TESTED: no setpriv that may hand on the capability to read")
    return [*switch, *command]


def test_a_users_server_answers_that_user_and_root() -> None:
    command = as_other_user([sys.executable, "-m", "qmd"])
    directory = Path(tempfile.mkdtemp())  # pytest's own lie below a directory of root's
    try:
        database = make_index(directory)
        for path in (directory, *directory.rglob("*")):
            os.chown(path, child.OTHER_USER, child.OTHER_USER)
        options = ["--db", str(database), "server", "--transport", "http", "--port", "0"]
        home = {**os.environ, **WITHOUT_MODEL, "HOME": str(directory)}
        with Serving([*command, *options], environment=home) as server:
            assert server.ask("GET", "/status").status == 200
            for uid, status in ((child.OTHER_USER, 200), (child.OTHER_USER - 1, 403)):
                [answer] = ask_as(uid, server.url, ("GET", "/status", None))
                assert answer.status == status
            assert server.stop() == 0
    finally:
        shutil.rmtree(directory)


LEAVE = """
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
body = b'{"path": "/", "text": "by a stranger who left"}'
connection.sendall(
    b"POST /contexts/add HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
    + b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body
)
connection.close()
"""


def test_a_request_of_one_who_has_left_is_not_taken_for_roots(start: Start) -> None:
    server = start("--access-log")
    port = urlsplit(server.url).port
    server.process.send_signal(signal.SIGSTOP)  # so that it looks only after the end
    try:
        child.as_user(child.OTHER_USER, LEAVE, port)
    finally:
        server.process.send_signal(signal.SIGCONT)
    server.says(r"path=/contexts/add status=403")
    assert "by a stranger" not in server.ask("GET", "/contexts").body.decode()


KEEP = """
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
found = []
for _ in range(3):  # http.client connects anew where the server has closed
    connection.request("GET", "/status")
    response = connection.getresponse()
    response.read()
    found.append((response.status, response.getheader("connection")))
print(json.dumps(found))
"""


def test_a_strangers_connection_is_closed_and_the_owners_is_kept(start: Start) -> None:
    server = start()
    port = urlsplit(server.url).port
    found = json.loads(child.as_user(child.OTHER_USER, KEEP, port))
    assert found == [[403, "close"]] * 3
    imports = "import http.client, json, sys\n"
    assert json.loads(child.run(imports + KEEP, port)) == [[200, None]] * 3


@pytest.mark.parametrize("how", ["option", "environment"])
def test_other_users_are_let_in_where_the_owner_says_so(start: Start, how: str) -> None:
    setting = {"QMD_ALLOW_OTHER_USERS": "1"} if how == "environment" else {}
    option = ["--allow-other-users"] if how == "option" else []
    server = start(*option, environment={**os.environ, **setting})
    [answer] = ask_as(child.OTHER_USER, server.url, ("GET", "/status", None))
    assert answer.status == 200


def test_a_token_lets_in_whoever_has_it(start: Start) -> None:
    server = start(environment={**os.environ, "QMD_TOKEN": "s3cret"})
    status = ("GET", "/status", None)
    [without] = ask_as(child.OTHER_USER, server.url, status)
    assert without.status == 401
    bearer = {"authorization": "Bearer s3cret"}
    [answer] = ask_as(child.OTHER_USER, server.url, status, headers=bearer)
    assert answer.status == 200


def test_a_link_is_refused_to_other_users_for_a_reason_that_is_not_the_token(start: Start) -> None:
    """As a proxy of another user asks, which forwards what a browser of the administrator sends."""
    server = start(environment={**os.environ, "QMD_TOKEN": "s3cret"})
    [answer] = ask_as(child.OTHER_USER, server.url, ("GET", "/open", None))
    assert answer.status == 403
    detail = answer.json()["detail"]
    assert "valid for programs of the user who started this server only" in detail
    assert "start the server with --allow-other-users" in detail
    assert "without a token" not in detail


# --- what doctor says -------------------------------------------------------------------


def port_check(database: Path) -> dict[str, str]:
    scratch = Scratch(database.parent)
    checks = json.loads(scratch.call("--db", str(database), "doctor", "--json").out)
    [found] = [check for check in checks if check["name"] == "port"]
    return dict(found)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], "ok", "answers programs of its own user"),
        (["--token", "s3cret"], "ok", "answers who has its token"),
        (["--allow-other-users"], "warning", "answers every user of this machine"),
    ],
)
def test_doctor_says_whom_the_port_answers(
    start: Start, database: Path, options: list[str], status: str, message: str
) -> None:
    server = start(*options)
    assert server.ask("GET", "/health").status == 200
    found = port_check(database)
    assert (found["status"], message in found["message"]) == (status, True), found
    assert server.url in found["message"]
    assert server.stop() == 0
    assert port_check(database)["message"].startswith("No server runs; one would answer programs")
