"""
What a search costs over MCP (stdio) and REST, beside the floor of each and the bare library.

    python benchmarks/mcp_overhead.py DATABASE [--calls 300] [--questions FILE]

The floors are ``ping`` and ``GET /health`` through the same processes. The queries are those of a
file, one a line, or the titles of documents; all are asked in turn, so that a busy machine slows
all alike. Each has its time on the clock and, on Linux, the CPU time of its server. Also prints how
large ``tools/list`` and the replies with ten hits are.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from peer import Peer

from qmd import KnowledgeBase

WARM = 20


class McpServer:
    """One process that speaks MCP over stdio; `call` returns the reply's line."""

    def __init__(self, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.id = 0
        info = {"name": "benchmark", "version": "1"}
        version = "2025-11-25"
        self.call(
            "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        )
        self._send({"method": "notifications/initialized"})

    @classmethod
    def qmd(cls, database: Path) -> McpServer:
        return cls([*measure.qmd(database, "mcp"), "--no-watch"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method: str, params: dict[str, Any]) -> bytes:
        assert self.process.stdout is not None
        self.id += 1
        self._send({"id": self.id, "method": method, "params": params})
        return self.process.stdout.readline()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class RestServer:
    """One ``qmd server`` process, with one connection that stays open."""

    def __init__(self, database: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "qmd", "--db", str(database), "server", "--no-watch"]
        self.process = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL)
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            try:
                self.connection.connect()
                return
            except ConnectionRefusedError:
                time.sleep(0.1)

    def call(self, method: str, path: str, arguments: dict[str, Any] | None = None) -> bytes:
        body = None if arguments is None else json.dumps(arguments)
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        return self.connection.getresponse().read()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def cpu_ns(pid: int) -> int:
    """The CPU time of all threads of a process; 0 where the system does not tell."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except (OSError, IndexError):  # the thread has ended
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--questions", type=Path, help="one a line; else the titles of documents")
    arguments = parser.parse_args()
    questions = arguments.questions
    searches = Searches(
        arguments.database,
        arguments.calls,
        None if questions is None else questions.read_text(encoding="utf-8").splitlines(),
    )
    print(f"{arguments.calls} calls; ms")
    for name in searches.clock:
        print(
            f"{name:22} p50 {searches.ms(name, 50):7.2f}   p95 {searches.ms(name, 95):7.2f}"
            f"   CPU p50 {searches.cpu_ms(name, 50):7.2f}   p95 {searches.cpu_ms(name, 95):7.2f}"
        )
    print(f"tools/list {searches.listing} bytes", end="")
    sizes = searches.bytes_of_ten
    if sizes:
        print(f"; ten hits p50 {round(statistics.median(sizes))}, largest {max(sizes)} bytes")
    print(
        "; ".join(
            f"{name} server {size:.1f} MB resident" for name, size in searches.memory_mb.items()
        )
    )


class Searches:
    """
    The same questions over MCP and REST and to the library, and to a peer's MCP, in turn.

    Args:
        questions: None takes the titles of documents.
        peer: With an index of the same documents.
    """

    def __init__(
        self, database: Path, calls: int, questions: Sequence[str] | None, peer: Peer | None = None
    ) -> None:
        self.clock: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}
        self.bytes_of_ten: list[int] = []
        """Of the texts that a model reads of ten hits."""
        servers = {"MCP": McpServer.qmd(database)}
        rest = RestServer(database)
        if peer is not None:
            servers[peer.name] = McpServer(peer.command("mcp"), peer.env)
        with KnowledgeBase.open(database, read_only=True) as kb:
            if questions is None:
                questions = [document.title for document in kb.documents()]
            chosen = random.Random(1).choices(questions, k=calls + WARM)
            for number, query in enumerate(chosen):
                self._ask(query, kb, servers, rest, peer, keep=number >= WARM)
        self.listing = len(servers["MCP"].call("tools/list", {}))
        processes = {name: server.process for name, server in servers.items()}
        processes["REST"] = rest.process
        self.memory_mb = {name: _resident_mb(p.pid) for name, p in processes.items()}
        for server in (*servers.values(), rest):
            server.stop()

    def _ask(
        self,
        query: str,
        kb: KnowledgeBase,
        servers: Mapping[str, McpServer],
        rest: RestServer,
        peer: Peer | None,
        *,
        keep: bool,
    ) -> None:
        """By each in turn."""
        mcp = servers["MCP"]
        search = {"name": "search", "arguments": {"query": query}}
        calls: dict[str, tuple[int, Callable[[], Any]]] = {
            "ping": (mcp.process.pid, lambda: mcp.call("ping", {})),
            "search over MCP": (mcp.process.pid, lambda: mcp.call("tools/call", search)),
            "GET /health": (rest.process.pid, lambda: rest.call("GET", "/health")),
            "search over REST": (
                rest.process.pid,
                lambda: rest.call("POST", "/search", {"query": query}),
            ),
            "KnowledgeBase.search": (os.getpid(), lambda: kb.search(query)),
        }
        if peer is not None:
            other = servers[peer.name]
            lexical = {"searches": [{"type": "lex", "query": query}], "rerank": False}
            theirs = {"name": "query", "arguments": lexical}
            calls[peer.name] = (other.process.pid, lambda: other.call("tools/call", theirs))
        for name, (pid, call) in calls.items():
            spent, started = cpu_ns(pid), time.perf_counter()
            reply = call()
            ended = time.perf_counter()
            if not keep:
                continue
            self.clock.setdefault(name, []).append((ended - started) * 1000)
            self.cpu.setdefault(name, []).append((cpu_ns(pid) - spent) / 1e6)
            if name == "search over MCP":
                self._weigh(reply)

    def _weigh(self, reply: bytes) -> None:
        result = json.loads(reply)["result"]
        if len(result.get("structuredContent", {}).get("results", ())) == 10:
            self.bytes_of_ten.append(sum(len(c["text"].encode()) for c in result["content"]))

    def ms(self, name: str, percent: int) -> float:
        return measure.percentile(self.clock[name], percent)

    def cpu_ms(self, name: str, percent: int) -> float:
        return measure.percentile(self.cpu[name], percent)


def _resident_mb(pid: int) -> float:
    """The resident set, 10^6 bytes; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1.024e-3


if __name__ == "__main__":
    main()
