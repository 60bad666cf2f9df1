"""A client with a narrow token at a real server: MCP, event streams, and the end of its token."""

from __future__ import annotations

import http.client
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from qmd import KnowledgeBase, Settings
from qmd.server import app as scoped_apps
from qmd.settings import BackendSettings
from qmd.store import Writer
from tests.support.live_app import LiveApp
from tests.support.model_server import ModelServer, hangs_after

T = TypeVar("T")
WAIT_S = 60


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(hangs_after("In a ")) as server:
        yield server


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("live")
    for name in ("work", "closedroom"):
        (root / name).mkdir()
        (root / name / f"{name}.md").write_text(f"# {name}\n\nrocket\n", encoding="utf-8")
    settings = Settings(backends=BackendSettings(llm_url=model.url, key=lambda _: "key"))
    with KnowledgeBase.open(root / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(root / "work")
        kb.add_collection(root / "closedroom")
        kb.index()
        yield kb


@pytest.fixture(scope="module")
def server(kb: KnowledgeBase) -> Iterator[LiveApp]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoped_apps, "RECHECK_S", 0.05)
        with LiveApp(kb, token="admin") as app:
            yield app


def with_mcp(server: LiveApp, token: str, use: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        headers = {"authorization": f"Bearer {token}"}
        with anyio.fail_after(WAIT_S):
            async with (
                httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http_client,
                Client(streamable_http_client(server.url + "/mcp", http_client=http_client)) as mcp,
            ):
                return await use(mcp)

    return anyio.run(run)


def test_mcp_tells_nothing_of_a_closed_collection(kb: KnowledgeBase, server: LiveApp) -> None:
    token = kb.create_token("reader", read=["work"]).token

    async def use(mcp: Client) -> list[str]:
        told = [f"{mcp.instructions}"]
        listing = await mcp.list_tools()
        told.append(f"{listing}")
        assert not any("edit" in tool.name or "delete" in tool.name for tool in listing.tools)
        told.append(f"{await mcp.call_tool('search', {'query': 'rocket'})}")
        told.append(f"{await mcp.call_tool('status', {})}")
        with pytest.raises(MCPError):
            await mcp.read_resource("qmd://closedroom/closedroom.md")
        told.append(f"{await mcp.read_resource('qmd://work/work.md')}")
        return told

    told = with_mcp(server, token, use)
    assert all("closedroom" not in each for each in told)
    assert "work" in told[2]


@contextmanager
def events_of(server: LiveApp, token: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=WAIT_S)
    with closing(connection):
        connection.request("GET", "/events", headers={"authorization": f"Bearer {token}"})
        with closing(connection.getresponse()) as response:
            assert response.status == 200
            assert response.readline() == b": qmd\n"
            yield response


def test_events_are_of_open_collections_and_end_with_the_token(
    kb: KnowledgeBase, server: LiveApp
) -> None:
    token = kb.create_token("listener", read=["work"]).token
    root = kb.path.parent
    with events_of(server, token) as stream:
        for name in ("closedroom", "work"):
            (root / name / "new.md").write_text("# New\n", encoding="utf-8")
            kb.index([name])
        lines: list[bytes] = []
        while not any(line.startswith(b"data:") for line in lines):
            lines.append(stream.readline())
        data: dict[str, Any] = json.loads(lines[-1].removeprefix(b"data:"))
        assert data["file"] == "work/new.md"
        kb.revoke_token("listener")
        assert b"closedroom" not in stream.read()  # which returns, as the stream has ended


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda kb: kb.revoke_token("asker"), id="revoked"),
        pytest.param(lambda kb: expire(kb, "asker"), id="expired"),
    ],
)
def test_a_conversation_ends_with_the_token(
    kb: KnowledgeBase,
    server: LiveApp,
    end: Callable[[KnowledgeBase], object],
) -> None:
    token = kb.create_token("asker", read=["work"], expires="1d").token
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=WAIT_S) as client:
        question = {"question": "Where is the rocket?"}
        with client.stream("POST", "/chat/stream", json=question) as stream:
            lines = stream.iter_lines()
            while "In " not in next(lines):
                pass
            end(kb)
            list(lines)  # which returns, as the stream has ended
        assert client.get("/chats").status_code == 401
    if any(each.name == "asker" for each in kb.tokens()):
        kb.revoke_token("asker")


def expire(kb: KnowledgeBase, name: str) -> None:
    """Let a token have expired a day ago."""

    def change(writer: Writer) -> None:
        [stored] = [each for each in writer.access.tokens() if each.token.name == name]
        writer.access.remove_token(name)
        past = replace(stored.token, expires="2020-01-01T00:00:00.000Z")
        writer.access.add_token(stored._replace(token=past))

    kb._store.write(change)


def test_a_session_of_mcp_is_of_no_use_with_another_token(
    kb: KnowledgeBase, server: LiveApp
) -> None:
    tokens = [kb.create_token(name, read=["work"]).token for name in ("one", "two")]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    headers = {"accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=WAIT_S) as client:
        begun = client.post("/mcp", json=hello, headers={"authorization": f"Bearer {tokens[0]}"})
        assert begun.status_code == 200
        session = begun.headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        statuses = [
            client.post(
                "/mcp",
                json=ping,
                headers={"authorization": f"Bearer {token}", "mcp-session-id": session},
            ).status_code
            for token in (*tokens, "admin")
        ]
    assert statuses == [200, 404, 404]
