"""MCP over HTTP with SSE, as clients of 2024-11-05 use it: the SDK's client, and a process."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
from mcp import ClientSession
from mcp.client.sse import sse_client
from support.http_server import WAIT_S, initialize, mcp_message, qmd_server, request
from support.vault import make_index

TOKEN = {"Authorization": "Bearer s3cret"}


async def _use(url: str) -> tuple[list[str], Any]:
    with anyio.fail_after(WAIT_S):
        async with (
            sse_client(f"{url}/sse", headers=TOKEN) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            tools = await session.list_tools()
            reply = await session.call_tool("search", {"query": "boat"})
            return [tool.name for tool in tools.tools], reply


def test_a_client_that_knows_only_sse_is_served(tmp_path: Path) -> None:
    with qmd_server(make_index(tmp_path), "--token", "s3cret", "--legacy-sse") as serving:
        url = str(serving.url)
        for _ in range(2):  # a stream that ends leaves room for the next
            names, reply = anyio.run(_use, url)
            assert "search" in names
            assert not reply.is_error
        assert request(url, "GET", "/sse").status == 401
        assert request(url, "POST", "/messages", {}).status == 401
        evil = {"Origin": "https://evil.example", **TOKEN}
        assert request(url, "GET", "/sse", headers=evil).status == 403
        assert request(url, "POST", "/sse", {}, TOKEN).status == 405
        unknown = f"/messages?session_id={'0' * 32}"
        assert request(url, "POST", unknown, {}, TOKEN).status == 404
        serving.stop()


def test_it_is_off_by_default(tmp_path: Path) -> None:
    with qmd_server(make_index(tmp_path), "--token", "s3cret") as serving:
        for method, path in (("GET", "/sse"), ("POST", "/messages")):
            assert request(str(serving.url), method, path, headers=TOKEN).status == 404


def test_a_client_that_does_not_read_loses_its_stream(tmp_path: Path) -> None:
    options = ("--token", "s3cret", "--legacy-sse", "--toolset", "all")
    with qmd_server(make_index(tmp_path), *options) as serving:
        host, port = urlsplit(str(serving.url)).netloc.split(":")
        with socket.socket() as stream:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stream.connect((host, int(port)))
            stream.sendall(
                f"GET /sse HTTP/1.1\r\nHost: {host}:{port}\r\n"
                "Authorization: Bearer s3cret\r\n\r\n".encode()
            )
            head = b""
            while b"session_id=" not in head or not head.endswith(b"\r\n\r\n"):
                head += stream.recv(1)
            session = re.findall(rb"session_id=(\w+)", head)[0].decode()
            path = f"/messages?session_id={session}"
            for message in (
                initialize("2024-11-05"),
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
            ):
                assert request(str(serving.url), "POST", path, message, TOKEN).status == 202
            for number in range(2, 2000):
                message = mcp_message("tools/list", {}, number)
                if request(str(serving.url), "POST", path, message, TOKEN).status != 202:
                    break
            else:
                raise AssertionError("the stream is still open")
        serving.says("replies unread")
        assert anyio.run(_use, str(serving.url))[0]
        serving.stop()
