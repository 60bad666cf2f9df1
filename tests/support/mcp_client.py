"""An MCP client for tests: the SDK's own, and a raw one that shows what is on the wire."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.server import Server
from mcp_types import Implementation
from support.http_server import WITHOUT_MODEL

from tests.support.warm import warm

WAIT_S = 60
"""Long enough for a process that starts on a busy machine; nothing ever waits for it to pass."""

T = TypeVar("T")
Mode = Literal["legacy", "auto", "2026-07-28"]


def with_client(
    server: Server[Any] | StdioServerParameters | str,
    use: Callable[[Client], Awaitable[T]],
    *,
    mode: Mode = "legacy",
    client_info: Implementation | None = None,
) -> T:
    """
    Connect the SDK's client, use it, and close it; never waits longer than `WAIT_S`.

    ``server``: also the URL of one over HTTP.

    Raises:
        MCPError: As ``use`` raised it, not wrapped into the groups of the client's tasks.
    """

    async def run() -> T | MCPError:
        with anyio.fail_after(WAIT_S):
            async with Client(server, mode=mode, client_info=client_info) as client:
                try:
                    return await use(client)
                except MCPError as error:
                    return error

    result = anyio.run(run)
    if isinstance(result, MCPError):
        raise result
    return result


def qmd_mcp(db: Path) -> list[str]:
    """The command that starts the server on a database."""
    return [sys.executable, "-m", "qmd", "--db", str(db), "mcp"]


class RawClient:
    """
    Speaks JSON-RPC over the pipes of a server process.

    Every line that arrives must be one JSON-RPC message, or `receive` fails: nothing else
    may be on stdout.
    """

    def __init__(self, command: Sequence[str], stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("wb") as log:
            self.process = warm.popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **WITHOUT_MODEL},
            )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._last_id = 0

    def __enter__(self) -> RawClient:
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
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                with suppress(BrokenPipeError):  # unsent bytes for a server that is gone
                    pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(encoding="utf-8")

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        self.send_line(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode())

    def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting; returns its id."""
        self._last_id += 1
        extra = {} if params is None else {"params": params}
        self.send({"id": self._last_id, "method": method, **extra})
        return self._last_id

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None when the server has closed its output."""
        line = self._lines.get(timeout=WAIT_S)
        if line is None:
            return None
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", line
        return dict(message)

    def receive_all(self) -> list[dict[str, Any]]:
        """Everything until the server closes its output."""
        return list(iter(self.receive, None))

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request and its response."""
        request_id = self.request(method, params)
        response = self.receive()
        assert response is not None, self.stderr
        assert response["id"] == request_id
        return response

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call."""
        result = self.call("tools/call", {"name": name, "arguments": arguments})["result"]
        return dict(result)

    def handshake(self, version: str = "2025-06-18") -> dict[str, Any]:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        result = self.call("initialize", params)["result"]
        self.send({"method": "notifications/initialized"})
        return dict(result)

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self, signal_number: signal.Signals) -> int:
        """Send a signal; returns the exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(WAIT_S)


def assert_few_bytes(tools: Sequence[Mapping[str, Any]], most: int) -> None:
    """Language models read the whole listing, so what it may take is limited."""
    sizes = {tool["name"]: _bytes(tool) for tool in tools}
    total = _bytes({"tools": tools})
    largest_first = sorted(sizes.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {taken}" for name, taken in largest_first)
    assert total <= most, (
        f"These {len(tools)} tools take {total} bytes, {total - most} more than they may:"
        f" {listed}. Say it in fewer words, let one tool serve two operations (Joined), keep"
        " arguments from models (Unlisted), or give the operation no tool (toolset=None). If the"
        " new tool is worth what each client then reads, raise the limit in the same commit."
    )


def _bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
