"""
What a search costs over MCP (stdio), beside the protocol's own floor and the bare library.

    python benchmarks/mcp_overhead.py DATABASE [--calls 300]

The floor is ``ping`` through the same process. The queries are the titles of documents; the
three are called in turn, so that a busy machine slows all alike. Also prints how large
``tools/list`` and the replies with ten hits are.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from qmd import KnowledgeBase


class Server:
    """One ``qmd mcp`` process; `call` returns the reply's line."""

    def __init__(self, database: Path) -> None:
        command = [sys.executable, "-m", "qmd", "--db", str(database), "mcp"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {"ping": [], "search over MCP": [], "KnowledgeBase.search": []}
    sizes: list[int] = []
    server = Server(arguments.database)
    with KnowledgeBase.open(arguments.database, read_only=True) as kb:
        documents = kb.documents()
        chosen = random.Random(1).choices(documents, k=arguments.calls + 20)
        for number, document in enumerate(chosen):
            query = document.title
            params = {"name": "search", "arguments": {"query": query}}
            started = [time.perf_counter()]
            server.call("ping", {})
            started.append(time.perf_counter())
            reply = server.call("tools/call", params)
            started.append(time.perf_counter())
            hits = kb.search(query).hits
            started.append(time.perf_counter())
            if number < 20:
                continue  # warming up
            for name, begin, end in zip(times, started, started[1:], strict=False):
                times[name].append((end - begin) * 1000)
            if len(hits) == 10:
                sizes.append(len(reply))
    listing = len(server.call("tools/list", {}))
    server.stop()
    print(f"{len(documents)} documents, {arguments.calls} calls; ms")
    for name, values in times.items():
        print(f"{name:22} p50 {statistics.median(values):7.2f}   p95 {_p95(values):7.2f}")
    print(f"tools/list {listing} bytes", end="")
    if sizes:
        print(f"; ten hits p50 {round(statistics.median(sizes))}, largest {max(sizes)} bytes")


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


if __name__ == "__main__":
    main()
