"""A qmd server in a process of its own, and the raw HTTP that a client of any kind may send."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

WAIT_S = 60
"""For a process on a busy machine; nothing ever waits for it to pass."""

MCP_ACCEPT = "application/json, text/event-stream"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def request(
    url: str,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own; ``body`` goes out as JSON unless it is bytes."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = {} if data is None else {"Content-Type": "application/json"}
    try:
        connection.request(method, path, data, {**sent, **(headers or {})})
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, response.read())
    finally:
        connection.close()


def mcp_message(method: str, params: object = None, request_id: int = 1) -> dict[str, Any]:
    extra = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **extra}


def initialize(version: str = "2025-11-25") -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return mcp_message(
        "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    )


class Serving:
    """``qmd server`` on a database, with a port that was free; always reaped."""

    def __init__(
        self,
        database: Path,
        stderr: Path,
        *options: str,
        command: str = "server",
        transport: str | None = "http",
        stdin: Any = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self._stderr = stderr
        chosen = [] if transport is None else ["--transport", transport]
        with stderr.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "qmd",
                    "--db",
                    str(database),
                    command,
                    *chosen,
                    "--port",
                    str(port),
                    *options,
                ],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
                env=None if environment is None else dict(environment),
            )

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(encoding="utf-8")

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until stderr holds the pattern."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = re.search(pattern, self.stderr)
            if found is not None:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in: {self.stderr!r}")

    @property
    def url(self) -> str:
        """Where it listens; waits until it says so. From then on connections are taken."""
        return self.says(r"url=(http://\S+)")[1]

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return request(self.url, method, path, body, named)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def stdout(self) -> bytes:
        """All that it wrote there, once it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read()


def raw(url: str, parts: Sequence[bytes]) -> bytes:
    """Send bytes as they are; returns all that comes until the server closes."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), WAIT_S) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))
