"""
Nothing leaves the machine: every command and server, watched by strace.

A tour of the whole program in a home of its own, with the real embedding model, which it makes
from the installed weights. Whatever it sends must stay on loopback, and whatever it writes must
lie in its own directories.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qmd.inference.embedded import build
from tests.support.cli import NOTES, Scratch, installed_command
from tests.support.http_server import Serving
from tests.support.mcp_client import RawClient
from tests.support.model_server import ModelServer, says
from tests.support.strace import Trace, why_not

QUESTION = "how is the database backed up?"
PATIENCE_S = 300  # strace makes all slower; nothing ever waits for it to pass

pytestmark = [
    pytest.mark.skipif(
        build.installed_file() is None, reason=f"{build.REQUIREMENT} is not installed"
    ),
    pytest.mark.unmeasured,  # coverage is no file that qmd writes
]


@dataclass
class Tour:
    """Commands in one scratch home, each watched where that can be done."""

    scratch: Scratch
    traces: dict[str, Trace] = field(default_factory=dict)
    #: All that was there before the first command.
    before: frozenset[Path] = frozenset()

    @property
    def root(self) -> Path:
        return self.scratch.root

    def command(self, *args: str) -> list[str]:
        program = [*installed_command(), *args]
        if why_not() is not None:
            return program
        trace = Trace(self.root.parent / f"trace-{len(self.traces)}")
        self.traces[f"{len(self.traces)} qmd {' '.join(args)}"] = trace
        return [*trace.command(), *program]

    def ended(self, pid: int) -> None:
        if self.traces:
            list(self.traces.values())[-1].wait(pid)

    def run(self, *args: str, **environment: str) -> str:
        with subprocess.Popen(
            self.command(*args),
            cwd=self.root,
            env=self.scratch.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, (args, out, err)
        self.ended(process.pid)
        return out

    @property
    def own_directories(self) -> list[Path]:
        home = self.root / "home"
        places = (".local/share/qmd", ".local/state/qmd", ".cache/qmd-python", ".config/qmd")
        return [home / place for place in places]

    def all_files(self) -> frozenset[Path]:
        return frozenset(self.root.rglob("*"))


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    root = tmp_path_factory.mktemp("tour").resolve() / "scratch"
    (root / "tmp").mkdir(parents=True)
    scratch = Scratch(root, {"TMPDIR": str(root / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"})
    for name, text in NOTES.items():
        scratch.write(name, text)
    made = Tour(scratch)
    made.before = made.all_files()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # it would write files, too
        _commands(made)
        _http_server(made)
        _stdio_server(made)
        _ask(made)
    return made


def _commands(tour: Tour) -> None:
    tour.run("collection", "add", "notes", "--no-index")
    tour.run("index", "--no-embed")
    tour.run("search", "database")
    assert "multilingual-e5" in tour.run("models", "list")
    tour.run("up", "--once", "docs")  # makes the model, and the vectors of all
    tour.run("embed")
    assert tour.run("query", QUESTION, "--json") != "[]\n"
    tour.run("update")
    tour.run("status")
    tour.run("doctor")


def _http_server(tour: Tour) -> None:
    command = tour.command("server", "--transport", "http", "--port", "0")
    with Serving(command, environment=tour.scratch.environment) as server:
        for path in ("/search", "/vsearch", "/query"):
            answer = server.ask("POST", path, {"query": QUESTION})
            assert answer.status == 200 and answer.json()["results"], path
        assert server.ask("GET", "/health").status == 200
        # A client in a process of its own: it lets the server embed the question.
        assert "备份" in tour.run("query", "备份", "--mode", "server")
        assert server.stop(signal.SIGTERM) == 0
    for name, trace in tour.traces.items():
        if " qmd server " in name:
            trace.wait(server.process.pid)


def _stdio_server(tour: Tour) -> None:
    environment = [f"{name}={value}" for name, value in tour.scratch.environment.items()]
    command = ["env", "-i", *environment, *tour.command("mcp")]
    with RawClient(command, tour.root.parent / "mcp-stderr") as client:
        client.handshake()
        result = client.tool("query", query=QUESTION)
        assert result["structuredContent"]["results"] and not result.get("isError")
        client.end_input()
        assert client.process.wait(PATIENCE_S) == 0
        tour.ended(client.process.pid)


def _ask(tour: Tour) -> None:
    block = json.dumps({"tool": "search", "params": {"query": "database"}})
    with ModelServer(says(f"```json:tool\n{block}\n```"), says("Every day.")) as model:
        answer = tour.run("ask", "--llm-url", model.url, "--json", QUESTION)
        assert json.loads(answer)["finalResponse"] == "Every day."
        assert len(model.requests) == 2


def strangers_to(allowed: list[Path], paths: Iterable[Path]) -> list[Path]:
    """The paths that lie in none of these directories and lead to none of them."""
    parents = {parent for directory in allowed for parent in directory.parents}
    return sorted(
        path
        for path in set(paths) - parents
        if not any(path.is_relative_to(directory) for directory in allowed)
    )


def skip_loudly(reason: str) -> None:
    warnings.warn(f"NOT TESTED that nothing is sent: {reason}", stacklevel=2)
    pytest.skip(f"NOT TESTED that nothing is sent: {reason}")


@pytest.mark.longest
@pytest.mark.filterwarnings("default")
def test_a_tour_of_all_commands_sends_nothing_and_writes_only_what_is_its_own(tour: Tour) -> None:
    """One test, so that the tour is made once, however many processes run the tests."""
    made = tour.all_files() - tour.before
    assert any(path.suffix == ".onnx" for path in made)  # it did make its model
    assert strangers_to(tour.own_directories, made) == []

    reason = why_not()
    if reason is not None:
        skip_loudly(reason)
    abroad = {name: trace.calls_abroad() for name, trace in tour.traces.items()}
    assert {name: calls for name, calls in abroad.items() if calls} == {}
    seen = {address for trace in tour.traces.values() for address in trace.addresses()}
    assert "127.0.0.1" in seen  # the servers', so strace did see something
    kernel = [Path("/dev"), Path("/proc")]  # no files: a worker lowers its own standing there
    while_it_ran = [*tour.own_directories, tour.root / "tmp", *kernel]
    for name, trace in tour.traces.items():
        files = (Path(os.path.normpath(tour.root / each)) for each in trace.files_made())
        assert strangers_to(while_it_ran, files) == [], name


@pytest.mark.filterwarnings("default")
def test_a_call_that_does_leave_is_seen(tmp_path: Path) -> None:
    reason = why_not()
    if reason is not None:
        skip_loudly(reason)
    trace = Trace(tmp_path / "trace")
    code = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.connect(('192.0.2.1', 9))\n"  # a datagram socket: nothing is sent
        "open('x', 'w').close()\n"
    )
    with subprocess.Popen([*trace.command(), sys.executable, "-c", code], cwd=tmp_path) as seen:
        seen.wait(PATIENCE_S)
    trace.wait(seen.pid)
    (call,) = trace.calls_abroad()
    assert "192.0.2.1" in call
    assert str(tmp_path / "x") in trace.files_made()
