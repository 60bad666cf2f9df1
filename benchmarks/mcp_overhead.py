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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qmd import KnowledgeBase

WARM = 20


class McpServer:
    """One ``qmd mcp`` process; `call` returns the reply's line."""

    def __init__(self, database: Path) -> None:
        command = [sys.executable, "-m", "qmd", "--db", str(database), "mcp", "--no-watch"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.id = 0
        info = {"name": "benchmark", "version": "1"}
        version = "2025-11-25"
        self.call(
            "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        )
        self._send({"method": "notifications/initialized"})

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
    clock: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    sizes: list[int] = []
    mcp, rest = McpServer(arguments.database), RestServer(arguments.database)
    with KnowledgeBase.open(arguments.database, read_only=True) as kb:
        documents = kb.documents()
        if arguments.questions:
            questions = arguments.questions.read_text(encoding="utf-8").splitlines()
        else:
            questions = [document.title for document in documents]
        chosen = random.Random(1).choices(questions, k=arguments.calls + WARM)
        for number, query in enumerate(chosen):
            search = {"name": "search", "arguments": {"query": query}}
            calls: dict[str, tuple[int, Callable[[], Any]]] = {
                "ping": (mcp.process.pid, lambda: mcp.call("ping", {})),
                "search over MCP": (
                    mcp.process.pid,
                    lambda: mcp.call("tools/call", search),  # noqa: B023
                ),
                "GET /health": (rest.process.pid, lambda: rest.call("GET", "/health")),
                "search over REST": (
                    rest.process.pid,
                    lambda: rest.call("POST", "/search", {"query": query}),  # noqa: B023
                ),
                "KnowledgeBase.search": (os.getpid(), lambda: kb.search(query)),  # noqa: B023
            }
            for name, (pid, call) in calls.items():
                spent, started = cpu_ns(pid), time.perf_counter()
                reply = call()
                ended = time.perf_counter()
                if number < WARM:
                    continue
                clock.setdefault(name, []).append((ended - started) * 1000)
                cpu.setdefault(name, []).append((cpu_ns(pid) - spent) / 1e6)
                if name == "search over MCP" and reply.count(b'"docid"') == 10:
                    sizes.append(len(reply))
    listing = len(mcp.call("tools/list", {}))
    memory = {name: _resident_mb(server.process.pid) for name, server in
              {"MCP": mcp, "REST": rest}.items()}  # fmt: skip
    mcp.stop()
    rest.stop()
    print(f"{len(documents)} documents, {arguments.calls} calls; ms")
    for name, values in clock.items():
        print(
            f"{name:22} p50 {statistics.median(values):7.2f}   p95 {_p95(values):7.2f}"
            f"   CPU p50 {statistics.median(cpu[name]):7.2f}   p95 {_p95(cpu[name]):7.2f}"
        )
    print(f"tools/list {listing} bytes", end="")
    if sizes:
        print(f"; ten hits p50 {round(statistics.median(sizes))}, largest {max(sizes)} bytes")
    print("; ".join(f"{name} server {size:.1f} MB resident" for name, size in memory.items()))


def _resident_mb(pid: int) -> float:
    """The resident set, 10^6 bytes; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1.024e-3


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


if __name__ == "__main__":
    main()
