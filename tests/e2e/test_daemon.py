"""``qmd mcp --daemon`` and ``qmd server stop``: a server in the background, as a real process."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.system import running
from tests.support.cli import Scratch, filled
from tests.support.disk import small
from tests.support.http_server import WITHOUT_MODEL


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    scratch = filled(tmp_path).with_env(**WITHOUT_MODEL)
    yield scratch
    if running.find(scratch.database) is not None:
        scratch.run("mcp", "stop")


def test_a_server_is_started_and_stopped(scratch: Scratch) -> None:
    started = scratch.run("mcp", "--http", "--daemon", "--port", "0", "--read-only")
    assert started.code == 0, started.err
    server = running.find(scratch.database)
    assert server is not None and running.answers(server)
    assert started.out == (
        f"Serving at {server.url} (MCP: {server.url}/mcp), process {server.pid}\n"
        "Its log: qmd server logs    End it: qmd server stop\n"
    )
    again = scratch.run("mcp", "--daemon")
    assert (again.code, "runs already" in again.err) == (1, True)
    assert scratch.run("mcp", "stop", "--json").json() == {
        "stopped": server.url, "pid": server.pid, "command": "qmd server",
    }  # fmt: skip
    assert not running.is_alive(server.pid)
    none = scratch.run("mcp", "stop")
    assert (none.code, "'qmd mcp --http --daemon' starts one" in none.err) == (1, True)


@pytest.mark.unmeasured
def test_a_token_is_no_argument_of_the_process(scratch: Scratch) -> None:
    scratch.run("server", "--daemon", "--port", "0", "--token", "s3cret")
    server = running.find(scratch.database)
    assert server is not None and server.token == "s3cret" and running.answers(server)
    arguments = Path(f"/proc/{server.pid}/cmdline")
    if arguments.exists():
        assert b"s3cret" not in arguments.read_bytes()


def test_a_start_that_fails_says_why(scratch: Scratch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = scratch.run("mcp", "--http", "--daemon", "--port", str(port))
    assert result.code == 1
    assert f"Port {port} on 127.0.0.1 is in use." in result.err


def test_a_server_that_no_command_could_find_is_not_started(
    scratch: Scratch, tmp_path: Path
) -> None:
    with small(tmp_path / "disk", "20m") as disk:
        database = shutil.copy(scratch.database, disk)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        result = scratch.run(
            "--db", str(database), "server", "--daemon", "--port", "0", "--read-only"
        )
    assert result.code != 0
    assert f"cannot be kept beside the database: {disk} is not writable" in result.err
    assert "qmd server --transport http" in result.err
