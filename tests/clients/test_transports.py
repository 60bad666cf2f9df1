"""Clients of npm over HTTP: mcp-remote, and the Inspector's command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import QMD

MCP_REMOTE = "mcp-remote@0.15.1"
INSPECTOR = "@modelcontextprotocol/inspector@0.17.2"
TOKEN = "s3cret"
WAIT_S = 120

pytestmark = pytest.mark.skipif(shutil.which("npx") is None, reason="needs npx")


@pytest.fixture(scope="module")
def url(database: Path) -> Iterator[str]:
    options = ["--transport", "http", "--port", "0", "--token", TOKEN, "--no-watch"]
    with subprocess.Popen(
        [QMD, "--db", str(database), "server", *options],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        addresses = (re.search(r"\burl=(\S+)", line) for line in server.stderr)
        address = next(filter(None, addresses))
        yield address[1]
        server.terminate()


def message(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


@pytest.mark.parametrize("transport", ["http-only", "http-first"])
def test_mcp_remote_connects(url: str, transport: str) -> None:
    client = {"name": "test", "version": "1"}
    lines = [
        message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        message(2, "tools/call", name="get", arguments={"file": "notes/boats.md"}),
    ]
    options = [
        "--transport",
        transport,
        "--allow-http",
        "--header",
        f"Authorization: Bearer {TOKEN}",
    ]
    with subprocess.Popen(
        ["npx", "-y", MCP_REMOTE, f"{url}/mcp", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as remote:
        assert remote.stdin is not None and remote.stdout is not None
        remote.stdin.write("\n".join(lines) + "\n")
        remote.stdin.flush()
        replies = (json.loads(line) for line in remote.stdout)
        reply = next(each for each in replies if each.get("id") == 2)
        remote.terminate()
    assert "ketch" in json.dumps(reply["result"])


def test_the_inspector_calls_a_tool(url: str) -> None:
    call = ["--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=masts"]
    header = ["--header", f"Authorization: Bearer {TOKEN}"]
    command = [
        "npx",
        "-y",
        INSPECTOR,
        "--cli",
        f"{url}/mcp",
        "--transport",
        "http",
        *header,
        *call,
    ]
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=WAIT_S
    ).stdout
    assert "notes/boats.md" in output
