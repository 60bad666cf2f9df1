"""A qmd server in a process of its own, and the raw HTTP that a client of any kind may send."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.support.warm import warm

WAIT_S = 60
"""For a process on a busy machine; nothing ever waits for it to pass."""

#: For a server that is not about vectors: with the default model it would begin to make those that
#: its notes lack, which takes seconds of CPU.
WITHOUT_MODEL = {"QMD_MODEL": "not-on-this-machine"}

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
    """A server in a process of its own, with all that it says on stderr; always reaped."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: Any = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.process = warm.popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self._said: list[bytes] = []
        self._is_silent = False
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

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
        self._reader.join(WAIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self._said.append(line)
                self._heard.notify_all()
        with self._heard:
            self._is_silent = True
            self._heard.notify_all()

    @property
    def stderr(self) -> str:
        """What it has said so far; all of it once it has ended."""
        if self.process.poll() is not None:
            self._reader.join(WAIT_S)
        return b"".join(self._said).decode()

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until stderr holds the pattern."""

        def found() -> re.Match[str] | None:
            return re.search(pattern, b"".join(self._said).decode())

        with self._heard:
            self._heard.wait_for(lambda: found() or self._is_silent, WAIT_S)
            match = found()
        assert match is not None, f"no {pattern!r} in: {self.stderr!r}"
        return match

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


def qmd_server(
    database: Path | str,
    *options: str,
    command: str = "server",
    transport: str | None = "http",
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> Serving:
    """
    ``qmd server`` on a file or the URL of a database, with a port that is free.

    ``settings``: as `Serving` has.

    Without an ``environment`` it has this process's, and makes no vectors.
    """
    settings["environment"] = environment or {**os.environ, **WITHOUT_MODEL}
    chosen = [] if transport is None else ["--transport", transport]
    program = [sys.executable, "-m", "qmd", "--db", str(database), command]
    return Serving([*program, *chosen, "--port", str(port), *options], **settings)
