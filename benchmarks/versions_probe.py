"""
Searches of the version of qmd that runs this file, warm; `versions.py` starts it.

    PYTHON benchmarks/versions_probe.py DATABASE FIXTURE

Prints figures as one JSON object. It uses nothing but what all versions since 1.0.0 have.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mcp_overhead import McpServer

from qmd import KnowledgeBase

WARM = 10


class PseudorandomEmbedder:
    """A unit vector for each text, float32[384], the same in every process."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def embed_query(self, text: str) -> Any:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        vector = np.random.default_rng(seed).standard_normal(384, dtype=np.float32)
        return vector / np.linalg.norm(vector)

    def embed_passages(self, texts: Any) -> Any:
        return np.stack([self.embed_query(text) for text in texts])


def open_with_vectors(database: Path) -> KnowledgeBase:
    try:
        from qmd.values import ModelSpec
    except ImportError:  # 1.0.0
        from qmd.model import ModelSpec
    embedder = PseudorandomEmbedder(
        ModelSpec(name="pseudorandom", fingerprint="pseudorandom", dimension=384, max_tokens=512)
    )
    try:
        from qmd import Settings
    except ImportError:  # 1.0.0
        return KnowledgeBase.open(database, embedder=embedder)
    return KnowledgeBase.open(database, Settings(embedder=embedder))


def timed(ask: Callable[[str], object], questions: list[str]) -> tuple[float, float]:
    """The median of CPU, and the 95th percentile of time on the clock, in ms."""
    for question in questions[:WARM]:
        ask(question)
    cpu, wall = [], []
    for question in questions:
        start, start_cpu = time.perf_counter(), time.process_time()
        ask(question)
        cpu.append((time.process_time() - start_cpu) * 1000)
        wall.append((time.perf_counter() - start) * 1000)
    return statistics.median(cpu), statistics.quantiles(wall, n=100, method="inclusive")[94]


def library(database: Path, questions: list[str]) -> dict[str, float]:
    figures = {}
    with open_with_vectors(database) as kb:
        start = time.process_time()
        kb.embed()
        figures["vectors stored, CPU s"] = time.process_time() - start
        for name in ("search", "vsearch", "query"):
            ask = getattr(kb, name)
            # Pseudorandom vectors are far from every question: without a minimum, there are hits.
            cpu, _ = timed(
                lambda question, ask=ask: ask(question, limit=10, min_score=0.0), questions
            )
            figures[f"warm `{name}`, CPU p50 ms"] = cpu
    return figures


def server(database: Path, questions: list[str]) -> dict[str, float]:
    """REST, one request after the other, and what the server holds in memory then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "qmd", "--db", str(database), "server", "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        notice = Path(f"{database}.server.json")  # written when the server answers
        while not notice.exists():
            if process.poll() is not None:
                sys.exit("the server did not start")
            time.sleep(0.05)
        url = json.loads(notice.read_text())["url"].rstrip("/")

        def post(path: str, body: dict[str, Any]) -> bytes:
            request = urllib.request.Request(
                url + path,
                json.dumps(body).encode(),
                {"Content-Type": "application/json",
                 "Accept": "application/json, text/event-stream"},
            )  # fmt: skip
            with urllib.request.urlopen(request, timeout=60) as reply:
                body_read: bytes = reply.read()
                return body_read

        figures = {}
        _, figures["REST search, p95 ms"] = timed(
            lambda question: post("/search", {"query": question, "limit": 10}), questions
        )

        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            pages = dict(line.split(":", 1) for line in status.read_text().splitlines())
            figures["server, RSS MB"] = int(pages["VmRSS"].split()[0]) * 1024 / 1e6
        return figures
    finally:
        process.terminate()
        process.wait()


def mcp(database: Path, questions: list[str]) -> dict[str, float]:
    """A search over MCP (stdio), one call after the other."""
    client = McpServer.qmd(database)

    def search(question: str) -> bytes:
        return client.call(
            "tools/call", {"name": "search", "arguments": {"query": question, "limit": 10}}
        )

    try:
        _, p95 = timed(search, questions)
        size = statistics.median(len(search(question)) for question in questions[:20])
    finally:
        client.stop()
    return {"MCP search, p95 ms": p95, "MCP reply, ten hits, bytes": size}


def main() -> None:
    database, fixture = Path(sys.argv[1]), Path(sys.argv[2])
    entries = json.loads(fixture.read_text(encoding="utf-8"))["queries"]
    questions = [entry["query"] for entry in entries]
    figures = library(database, questions)
    figures |= server(database, questions) | mcp(database, questions)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
