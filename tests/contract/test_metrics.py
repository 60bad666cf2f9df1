"""``/metrics``: Prometheus's own parser reads it, the figures are right, and nothing is private."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from qmd import KnowledgeBase, Settings
from qmd.server.activity import BUCKETS_S, RequestCounts
from qmd.server.app import build_app
from qmd.server.security import Security
from tests.support.embedder import HashEmbedder

SECRET = "Geheimwort"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    notes = tmp_path / SECRET
    notes.mkdir()
    (notes / f"{SECRET}.md").write_text(f"# {SECRET}\n\n{SECRET}", encoding="utf-8")
    (notes / "bad.md").write_bytes(b"\0\1\2\3")
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(notes)
        kb.index()
        yield kb


@contextmanager
def serving(kb: KnowledgeBase, **options: Any) -> Iterator[TestClient]:
    app = build_app(kb, **options)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def figures(client: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Name and labels → value, of all samples."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = [
        sample
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    ]
    values = {(each.name, frozenset(each.labels.items())): each.value for each in samples}
    assert len(values) == len(samples), "a sample stands there twice"
    return values


def value(client: TestClient, name: str, **labels: str) -> float | None:
    return figures(client).get((name, frozenset(labels.items())))


def test_requests_are_counted_by_route_and_status(kb: KnowledgeBase) -> None:
    with serving(kb) as client:
        for _ in range(3):
            client.post("/search", json={"query": SECRET})
        client.post("/search", json={"no": SECRET})
        client.get(f"/collections/{SECRET}")
        client.get(f"/{SECRET}")
        client.request(SECRET.upper(), "/search")
        client.get("/metrics", headers={"Host": f"{SECRET}.example"})
        after = figures(client)

    def requests(method: str, route: str, status: str) -> float | None:
        labels = {"method": method, "route": route, "status": status}
        return after.get(("qmd_http_requests_total", frozenset(labels.items())))

    assert requests("POST", "/search", "200") == 3
    assert requests("POST", "/search", "400") == 1
    assert requests("other", "/search", "405") == 1
    assert requests("GET", "/collections/{name}", "200") == 1
    assert requests("GET", "(none)", "404") == 1
    assert requests("GET", "(none)", "403") == 1
    durations = frozenset({"route": "/search"}.items())
    assert after["qmd_http_request_duration_seconds_count", durations] == 5
    assert after["qmd_http_request_duration_seconds_sum", durations] > 0


def test_the_index_is_described(kb: KnowledgeBase) -> None:
    with serving(kb) as client:
        assert value(client, "qmd_documents") == 1
        assert value(client, "qmd_collections") == 1
        assert value(client, "qmd_chunks_waiting") == value(client, "qmd_chunks") == 1
        assert value(client, "qmd_files_skipped") == 1
        assert value(client, "qmd_watch", state="off") == 1
        assert value(client, "qmd_keeper") == 0
        synced = value(client, "qmd_last_sync_timestamp_seconds")
        kb.embed()
        assert value(client, "qmd_chunks_waiting") == 0
        assert value(client, "qmd_model_loaded") == 1
        kb.keep()
        assert value(client, "qmd_database_readable") == 1
        started = value(client, "process_start_time_seconds")
    assert synced is not None
    assert started is not None
    assert 0 <= started - synced < 600


def test_tools_are_counted(kb: KnowledgeBase) -> None:
    from tests.support.http_server import MCP_ACCEPT, initialize, mcp_message

    with serving(kb) as client:
        headers = {"Accept": MCP_ACCEPT}
        session = client.post("/mcp", json=initialize(), headers=headers)
        headers["Mcp-Session-Id"] = session.headers["mcp-session-id"]
        for name, arguments in (("search", {"query": SECRET}), ("search", {}), (SECRET, {})):
            call = mcp_message("tools/call", {"name": name, "arguments": arguments}, 2)
            client.post("/mcp", json=call, headers=headers)
        assert value(client, "qmd_mcp_tool_calls_total", tool="search", outcome="ok") == 1
        assert value(client, "qmd_mcp_tool_calls_total", tool="search", outcome="error") == 1
        assert SECRET not in client.get("/metrics").text


def test_nothing_private_is_told(kb: KnowledgeBase) -> None:
    with serving(kb) as client:
        client.post("/search", json={"query": SECRET})
        client.get(f"/note/{SECRET}/{SECRET}.md")
        client.get(f"/{SECRET}?q={SECRET}")
        client.get(f"/collections/{SECRET}")
        text = client.get("/metrics").text
    assert SECRET not in text


def test_the_documentation_has_every_figure(kb: KnowledgeBase) -> None:
    text = (Path(__file__).parents[2] / "docs/server.md").read_text(encoding="utf-8")
    with serving(kb) as client:
        families = list(text_string_to_metric_families(client.get("/metrics").text))
    assert len(families) > 15
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in text, name


def test_every_kind_of_route_has_its_pattern(kb: KnowledgeBase) -> None:
    with serving(kb) as client:
        for path in ("/", "/overview", "/mcp", "/health", "/static/base.css", "/open?code=x"):
            client.get(path)
        routes = {dict(labels).get("route") for _, labels in figures(client)}
    assert {"/", "/overview", "/mcp", "/health", "/open"} <= routes
    assert any(route and route.startswith("/static/{") for route in routes)


def test_a_request_of_a_client_with_a_token_is_counted_by_its_route(kb: KnowledgeBase) -> None:
    """Also by the server as a whole, whose own routes keep their names."""
    token = kb.create_token("anna", read=[kb.collections()[0].name]).token
    with serving(kb, security=Security(token="right")) as client:
        client.post("/search", json={"query": "x"}, headers={"Authorization": f"Bearer {token}"})
        client.headers["Authorization"] = "Bearer right"
        client.get("/status")
        routes = {dict(labels).get("route") for _, labels in figures(client)}
    assert {"/search", "/status"} <= routes


def test_the_token_guards_it(kb: KnowledgeBase) -> None:
    with serving(kb, security=Security(token="right")) as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer right"}).status_code == 200


def test_a_database_that_is_gone_leaves_the_other_figures(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    with serving(kb) as client:
        assert value(client, "qmd_database_readable") == 1
        (tmp_path / "index.sqlite").rename(tmp_path / "moved.sqlite")
        after = figures(client)
    assert after["qmd_database_readable", frozenset()] == 0
    assert ("qmd_documents", frozenset()) not in after
    assert any(name == "qmd_http_requests_total" for name, _ in after)


def test_each_duration_is_in_the_bucket_of_its_bound() -> None:
    counts = RequestCounts()
    for duration_s in (*BUCKETS_S, 0.0, 31.0):
        counts.add("GET", "/", 200, duration_s)
    assert counts.durations["/"] == [2, *[1] * (len(BUCKETS_S) - 1), 1]
    assert counts.requests["GET", "/", 200] == len(BUCKETS_S) + 2
