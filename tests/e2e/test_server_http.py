"""``qmd server --transport http``: what clients of every kind meet."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from support.http_server import (
    MCP_ACCEPT,
    WAIT_S,
    Serving,
    initialize,
    mcp_message,
    qmd_server,
    raw,
    request,
)
from support.mcp_client import Mode
from support.vault import make_index

from qmd import __version__
from qmd.server.security import MAX_BODY_BYTES

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    directory = tmp_path_factory.mktemp("http")
    with qmd_server(make_index(directory), "--no-watch") as server:
        yield server


def search(url: str, mode: Mode, word: str) -> str:
    async def run() -> str:
        with anyio.fail_after(WAIT_S):
            async with Client(f"{url}/mcp", mode=mode) as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert {"search", "vsearch", "query", "get", "multi_get", "status"} <= listed
                result = await client.call_tool("search", {"query": word})
        assert result.structured_content is not None
        return str(result.structured_content["results"][0]["file"])

    return anyio.run(run)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_sdks_client_finds_documents_in_every_era(serving: Serving, mode: Mode) -> None:
    assert search(serving.url, mode, "数据库") == "notes/2025/回顾.md"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_handshake_revision_is_negotiated(serving: Serving, version: str) -> None:
    answer = serving.ask("POST", "/mcp", initialize(version), accept=MCP_ACCEPT)
    assert answer.status == 200
    assert answer.headers["mcp-session-id"]
    data = next(line for line in answer.body.decode().splitlines() if line.startswith("data: "))
    result = json.loads(data[6:])["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "qmd", "version": __version__}
    assert result["capabilities"]["resources"]["subscribe"] is True


def test_a_session_ends_when_its_client_deletes_it(serving: Serving) -> None:
    session = serving.ask("POST", "/mcp", initialize(), accept=MCP_ACCEPT).headers["mcp-session-id"]
    headers = {"mcp-session-id": session, "accept": MCP_ACCEPT}
    assert request(serving.url, "DELETE", "/mcp", None, headers).status == 200
    after = request(serving.url, "POST", "/mcp", mcp_message("tools/list"), headers)
    assert after.status == 404


def test_rest_and_mcp_share_the_port(serving: Serving) -> None:
    health = serving.ask("GET", "/health")
    assert health.json()["status"] == "healthy"
    found = serving.ask("POST", "/search", {"query": "boat"}).json()
    assert found["results"][0]["file"] == "notes/2025/plan.md"


# --- who may ask ---------------------------------------------------------------------

HOSTILE = [
    {"host": "evil.example"},
    {"host": "127.0.0.1.evil.example:80"},
    {"host": "localhost.evil.example"},
    {"host": "[::1].evil.example"},
    {"host": ""},
    {"origin": "http://evil.example"},
    {"origin": "http://localhost.evil.example"},
    {"origin": "http://evil.example#localhost"},
    {"origin": "http://localhost@evil.example"},
    {"origin": "null"},
    {"origin": "file://"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
]


@pytest.mark.parametrize("headers", HOSTILE, ids=str)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/mcp"), ("GET", "/mcp"), ("POST", "/search"), ("GET", "/health"), ("GET", "/nope")],
)
def test_a_hostile_page_reaches_no_route(
    serving: Serving, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = request(serving.url, method, path, {"query": "boat"}, headers)
    assert answer.status == 403
    assert answer.json()["status_code"] == 403
    assert set(answer.json()) == {"detail", "status_code"}
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost"},
        {"host": "LOCALHOST:1"},
        {"host": "[::1]:18765"},
        {"origin": "http://localhost:3000"},
        {"origin": "https://127.0.0.1"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
    ids=str,
)
def test_this_machine_may_ask_by_each_of_its_names(
    serving: Serving, headers: dict[str, str]
) -> None:
    assert request(serving.url, "GET", "/health", None, headers).status == 200


def test_a_preflight_of_another_site_is_not_granted(serving: Serving) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = request(serving.url, "OPTIONS", "/search", None, asked)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_answers_carry_what_keeps_browsers_from_guessing(serving: Serving) -> None:
    headers = serving.ask("GET", "/status").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]


# --- how much -----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/search", "/mcp", "/nope"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_body_over_the_limit_is_refused(serving: Serving, path: str, chunked: bool) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    if chunked:
        piece = b"x" * 65536
        chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
        parts = [head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 64, b"1\r\nx\r\n"]
    else:
        parts = [head + f"Content-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode()]
    answer = raw(serving.url, parts)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status_code"] == 413


def test_a_body_within_the_limit_is_read(serving: Serving) -> None:
    body = b'{"file": "nowhere.md"' + b" " * 1_000_000 + b"}"
    assert serving.ask("POST", "/get", body).status == 404


def test_a_client_that_sends_far_too_much_still_reads_the_answer(serving: Serving) -> None:
    """Closing a connection on which bytes wait to be read throws the answer away with them."""
    answer = serving.ask("POST", "/search", b'{"query": "' + b"x" * (10 << 20) + b'"}')
    assert answer.status == 413


@pytest.mark.parametrize(
    "line", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"!\r\n\r\n"]
)
def test_what_is_no_http_is_answered_in_the_shape_of_errors(serving: Serving, line: bytes) -> None:
    head, _, body = raw(serving.url, [line]).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["status_code"] == 400


def test_clients_that_vanish_or_stay_silent_hold_up_nobody(serving: Serving) -> None:
    address = urlsplit(serving.url)
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    silent = []
    for sent in (b"", b"GET /health", head):
        for _ in range(10):
            connection = socket.create_connection((address.hostname, address.port), WAIT_S)
            connection.sendall(sent)
            silent.append(connection)
    try:
        for connection in silent[::2]:
            connection.close()
        assert serving.ask("GET", "/health").status == 200
        assert search(serving.url, "legacy", "boat") == "notes/2025/plan.md"
    finally:
        for connection in silent:
            connection.close()


def test_two_hundred_requests_at_once_are_all_answered(serving: Serving) -> None:
    async def ask(number: int) -> bytes:
        address = urlsplit(serving.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        body = json.dumps({"query": "islands", "limit": number % 50 + 1}).encode()
        writer.write(
            b"POST /search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = await asyncio.wait_for(reader.read(), WAIT_S)
        writer.close()
        await writer.wait_closed()
        return answer

    async def all_of_them() -> list[bytes]:
        return await asyncio.gather(*map(ask, range(200)))

    answers = asyncio.run(all_of_them())
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    assert all(b"notes/2025/plan.md" in answer for answer in answers)


def test_thirty_two_mcp_clients_are_served_side_by_side(serving: Serving) -> None:
    modes: list[Mode] = ["legacy", "2026-07-28"]

    async def one(number: int, files: list[str]) -> None:
        async with Client(f"{serving.url}/mcp", mode=modes[number % 2]) as client:
            for _ in range(3):
                result = await client.call_tool("search", {"query": "sourdough"})
                assert result.structured_content is not None
                files.append(result.structured_content["results"][0]["title"])

    async def run() -> list[str]:
        files: list[str] = []
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for number in range(32):
                    tasks.start_soon(one, number, files)
        return files

    assert anyio.run(run) == ["Interview"] * 96


def test_nothing_was_said_on_stdout_and_no_trace_on_stderr(serving: Serving) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: serving.ask("GET", "/status").status, range(8)))
    assert "Traceback" not in serving.stderr
    assert "error" not in serving.stderr
