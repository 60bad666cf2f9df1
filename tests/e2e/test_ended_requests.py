"""Over real sockets: a request that is late, or whose client has left, stops working."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from support.embedder import HashEmbedder
from support.http_server import MCP_ACCEPT, WAIT_S, request
from support.live_app import LiveApp
from support.mcp_client import with_client
from support.rest import rest_server
from support.slow import SlowKnowledgeBase
from support.vault import make_index

from qmd import KnowledgeBase, Settings
from qmd.server.mcp import McpFace
from qmd.server.rest import Limits
from qmd.server.workers import BULKY_AT_ONCE

CLIENTS = 8


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[SlowKnowledgeBase]:
    with SlowKnowledgeBase.open(make_index(tmp_path)) as opened:
        assert isinstance(opened, SlowKnowledgeBase)
        yield opened


def sent(
    url: str, path: str, body: object, headers: str = "", *, missing: int = 0
) -> socket.socket:
    """A connection on which a request has gone out, but for ``missing`` bytes; nobody reads."""
    address = urlsplit(url)
    data = json.dumps(body).encode()
    connection = socket.create_connection((address.hostname, address.port), WAIT_S)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"{headers}Content-Length: {len(data) + missing}\r\n\r\n"
    )
    connection.sendall(head.encode() + data)
    return connection


def began(kb: SlowKnowledgeBase) -> bool:
    return kb.begun.acquire(timeout=WAIT_S)


def test_requests_that_are_late_free_their_threads(kb: SlowKnowledgeBase) -> None:
    limits = Limits(read_s=0.5, readers=2)
    with rest_server(kb, limits=limits) as (host, port), ThreadPoolExecutor(CLIENTS) as pool:
        url = f"http://{host}:{port}"
        late = [
            pool.submit(request, url, "POST", "/search", {"query": "x"}) for _ in range(CLIENTS)
        ]
        for each in late:
            answer = each.result(WAIT_S)
            assert answer.status == 503
            assert "longer than 0.5 s" in answer.json()["detail"]
        # Both places are free within the time of one request: it would be refused otherwise.
        assert request(url, "GET", "/status").status == 200


def test_requests_whose_clients_left_free_their_threads(kb: SlowKnowledgeBase) -> None:
    with rest_server(kb, limits=Limits(readers=CLIENTS)) as (host, port):
        url = f"http://{host}:{port}"
        clients = [sent(url, "/search", {"query": "x"}) for _ in range(CLIENTS)]
        for _ in clients:
            assert began(kb)
        for client in clients:
            client.close()
        assert request(url, "GET", "/status").status == 200


def test_what_waits_for_its_turn_never_begins_once_its_client_has_left(
    kb: SlowKnowledgeBase,
) -> None:
    with rest_server(kb, limits=Limits(readers=1)) as (host, port):
        url = f"http://{host}:{port}"
        first = sent(url, "/search", {"query": "x"})
        assert began(kb)
        waiting = [sent(url, "/search", {"query": "x"}) for _ in range(CLIENTS)]
        for client in (*waiting, first):
            client.close()
        assert request(url, "GET", "/status").status == 200
        assert request(url, "GET", "/documents").status == 200


def test_calls_that_read_many_documents_hold_up_no_other(kb: SlowKnowledgeBase) -> None:
    with LiveApp(kb) as app:
        clients = [sent(app.url, "/multi_get", {"pattern": "**"}) for _ in range(3 * CLIENTS)]
        for _ in range(BULKY_AT_ONCE):
            assert began(kb)
        assert request(app.url, "GET", "/status").status == 200
        for client in clients:
            client.close()


def test_tools_that_read_many_documents_hold_up_no_other(kb: SlowKnowledgeBase) -> None:
    face = McpFace(kb)

    async def use(client: Client) -> bool:
        async with anyio.create_task_group() as tasks:
            for _ in range(3 * CLIENTS):
                tasks.start_soon(client.call_tool, "multi_get", {"pattern": "**"})
            for _ in range(BULKY_AT_ONCE):
                assert await anyio.to_thread.run_sync(began, kb)
            assert not (await client.call_tool("status", {})).is_error
            tasks.cancel_scope.cancel()
        return await anyio.to_thread.run_sync(face.wait_until_idle, WAIT_S)

    assert with_client(face.server, use)


class TakingTurns(HashEmbedder):
    """Counts the lots it is given, and waits in the first one until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.lots: list[int] = []
        self.began = threading.Semaphore(0)
        self.go_on = threading.Event()

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.lots.append(len(texts))
        self.began.release()
        assert self.go_on.wait(WAIT_S)
        return super().embed_passages(texts)


@pytest.mark.unmeasured
def test_a_large_embed_lets_others_in_between(tmp_path: Path) -> None:
    model = TakingTurns()
    with (
        KnowledgeBase.open(make_index(tmp_path), Settings(embedder=model)) as kb,
        rest_server(kb) as (host, port),
        ThreadPoolExecutor(2) as pool,
    ):
        url = f"http://{host}:{port}"
        large = pool.submit(request, url, "POST", "/embed", {"texts": ["x" * 900] * 200})
        assert model.began.acquire(timeout=WAIT_S)
        small = pool.submit(request, url, "POST", "/embed", {"texts": ["a"]})
        model.go_on.set()
        assert small.result(WAIT_S).status == 200
        assert len(large.result(WAIT_S).json()["embeddings"]) == 200
    assert max(model.lots) <= 16
    assert 1 in model.lots[:-1]  # before the large one was done


def test_an_embed_whose_client_has_left_stops_at_the_next_lot(tmp_path: Path) -> None:
    model = TakingTurns()
    with (
        KnowledgeBase.open(make_index(tmp_path), Settings(embedder=model)) as kb,
        rest_server(kb) as (host, port),
    ):
        url = f"http://{host}:{port}"
        client = sent(url, "/embed", {"texts": ["x"] * 1000})
        assert model.began.acquire(timeout=WAIT_S)
        client.close()
        assert request(url, "GET", "/status").status == 200
        model.go_on.set()
        assert request(url, "POST", "/embed", {"texts": ["a"]}).status == 200
    assert len(model.lots) <= 3  # the first, perhaps one that had its turn, and ours


def test_what_one_embed_takes_is_bounded(tmp_path: Path) -> None:
    model = HashEmbedder()
    with (
        KnowledgeBase.open(make_index(tmp_path), Settings(embedder=model)) as kb,
        rest_server(kb) as (host, port),
    ):
        url = f"http://{host}:{port}"
        for texts, said in (
            (["a", "x" * 900_000], "Text 2 has 900,000 characters, more than 32,000. Split it"),
            (["x" * 32_000] * 32, "The texts have 1,024,000 characters in all, more than"),
        ):
            answer = request(url, "POST", "/embed", {"texts": texts})
            assert answer.status == 413
            assert said in answer.json()["detail"]
        assert request(url, "POST", "/embed", {"texts": ["x" * 32_000]}).status == 200


def test_mcp_over_http_ends_with_its_client(kb: SlowKnowledgeBase) -> None:
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "search", "arguments": {"query": "x"}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = (
        f"Accept: {MCP_ACCEPT}\r\nMCP-Protocol-Version: {version}\r\n"
        "Mcp-Method: tools/call\r\nMcp-Name: search\r\n"
    )
    with LiveApp(kb) as app:
        clients = [sent(app.url, "/mcp", message, headers) for _ in range(CLIENTS)]
        for _ in clients:
            assert began(kb)
        for client in clients:
            client.close()
        assert app.face.wait_until_idle(WAIT_S)


def test_mcp_calls_end_when_they_are_cancelled(kb: SlowKnowledgeBase) -> None:
    face = McpFace(kb)

    async def use(client: Client) -> bool:
        async with anyio.create_task_group() as tasks:
            for _ in range(CLIENTS):
                tasks.start_soon(client.call_tool, "search", {"query": "x"})
            for _ in range(CLIENTS):
                assert await anyio.to_thread.run_sync(began, kb)
            tasks.cancel_scope.cancel()  # the client sends notifications/cancelled
        idle = await anyio.to_thread.run_sync(face.wait_until_idle, WAIT_S)
        assert not (await client.call_tool("status", {})).is_error
        return idle

    assert with_client(face.server, use)


def test_what_a_stopping_server_ends_is_answered(
    kb: SlowKnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    with LiveApp(kb, stop_s=1) as app:
        running = sent(app.url, "/search", {"query": "x"})
        assert began(kb)
        # The text says that one more byte follows, which never does.
        unfinished = sent(app.url, "/search", {}, "Expect: 100-continue\r\n", missing=1)
        assert unfinished.recv(1 << 16).startswith(b"HTTP/1.1 100")
    for connection in (running, unfinished):
        response = HTTPResponse(connection)
        response.begin()
        assert response.status == 503
        assert response.headers["content-type"] == "application/json"
        assert list(json.loads(response.read())) == ["detail", "status_code"]
        connection.close()
    problems = [each for each in caplog.records if each.levelname == "ERROR"]
    assert [each.exc_info for each in problems] == [None]
