"""MCP over HTTP with SSE, as clients of 2024-11-05 use it: the SDK's client, and a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.sse import sse_client
from support.http_server import WAIT_S, qmd_server, request
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


def test_it_is_off_by_default(tmp_path: Path) -> None:
    with qmd_server(make_index(tmp_path), "--token", "s3cret") as serving:
        for method, path in (("GET", "/sse"), ("POST", "/messages")):
            assert request(str(serving.url), method, path, headers=TOKEN).status == 404
