"""A large reply to a client of the handshake eras is JSON, and no event of a megabyte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.http_server import MCP_ACCEPT, initialize, mcp_message

from qmd import KnowledgeBase
from qmd.server.app import build_app
from qmd.server.streams import LARGE

LONG = "A line of a long note.\n" * (2 * LARGE // 23)
HEADERS = {"Accept": MCP_ACCEPT}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("large")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "long.md").write_text(f"# Long\n\n{LONG}", encoding="utf-8")
    (notes / "short.md").write_text("# Short\n\nA line\u2028or two.\n", encoding="utf-8")
    with KnowledgeBase.open(folder / "index.sqlite", create=True) as kb:
        kb.add_collection(notes)
        kb.index()
        with TestClient(build_app(kb), base_url="http://localhost") as asked:
            yield asked


def call(client: TestClient, version: str, file: str) -> Any:
    opened = client.post("/mcp", json=initialize(version), headers=HEADERS)
    session = {
        **HEADERS,
        "Mcp-Session-Id": opened.headers["mcp-session-id"],
        "Mcp-Protocol-Version": version,
    }
    client.post(
        "/mcp",
        json={"jsonrpc": "2.0", "method": "notifications/initialized"},
        headers=session,
    )
    params = {"name": "get", "arguments": {"file": file}}
    return client.post("/mcp", json=mcp_message("tools/call", params, 7), headers=session)


def text_of(reply: Any) -> str:
    assert reply["id"] == 7
    return str(reply["result"]["content"][0]["resource"]["text"])


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_large_reply_is_json(client: TestClient, version: str) -> None:
    answer = call(client, version, "notes/long.md")
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content) > LARGE
    assert "mcp-session-id" in answer.headers
    assert text_of(answer.json()).endswith(LONG)


def test_a_small_reply_stays_an_event(client: TestClient) -> None:
    answer = call(client, "2025-06-18", "notes/short.md")
    assert answer.headers["content-type"] == "text/event-stream"
    data = [line for line in answer.text.split("\n") if line.startswith("data: ")]
    assert len(data) == 1
    assert "A line" in text_of(json.loads(data[0].removeprefix("data: ")))
