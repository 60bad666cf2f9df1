"""Pages of named origins may use the server, within its other rules; all others stay out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from support.vault import make_index

from qmd import KnowledgeBase
from qmd.errors import InputError
from qmd.server.app import build_app
from qmd.server.security import Security, allowed_origins, security_for

CHAT = "https://chat.example.org"
INSPECTOR = "http://localhost:6274"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, mcp-session-id",
}
TOKEN = {"Authorization": "Bearer s3cret"}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(make_index(tmp_path_factory.mktemp("origins"))) as opened:
        yield opened


def client_of(kb: KnowledgeBase, security: Security, host: str = "localhost") -> TestClient:
    app = build_app(kb, security=security)
    return TestClient(app, base_url=f"http://{host}")


@pytest.fixture(scope="module")
def client(kb: KnowledgeBase) -> TestClient:
    return client_of(kb, security_for("127.0.0.1", "s3cret", origins=[CHAT, INSPECTOR]))


def test_a_browser_is_told_what_a_page_may_send(client: TestClient) -> None:
    answer = client.options("/query", headers={"Origin": CHAT, **PREFLIGHT})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == CHAT
    assert (
        answer.headers["access-control-allow-headers"]
        == PREFLIGHT["Access-Control-Request-Headers"]
    )
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["vary"].startswith("Origin")
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", [CHAT, INSPECTOR])
def test_a_page_of_a_named_origin_reads_answers_with_the_token(
    client: TestClient, origin: str
) -> None:
    page = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    body = {"query": "boat"}
    allowed = client.post("/search", json=body, headers={**page, **TOKEN})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == origin
    assert "Mcp-Session-Id" in allowed.headers["access-control-expose-headers"]
    refused = client.post("/search", json=body, headers=page)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == origin  # so that the page can say why


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://chat.example.org",
        "https://chat.example.org:8443",
        "https://chat.example.org.evil.example",
        "null",
        "",
    ],
)
def test_a_page_of_another_origin_is_refused(client: TestClient, origin: str) -> None:
    for answer in (
        client.post("/search", json={"query": "boat"}, headers={"Origin": origin, **TOKEN}),
        client.options("/query", headers={"Origin": origin, **PREFLIGHT}),
    ):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


def test_by_default_no_origin_is_named(kb: KnowledgeBase) -> None:
    answer = client_of(kb, security_for("127.0.0.1", None)).options(
        "/query", headers={"Origin": CHAT, **PREFLIGHT}
    )
    assert answer.status_code == 403


def test_a_named_origin_does_not_help_a_foreign_host(kb: KnowledgeBase) -> None:
    client = client_of(kb, Security(origins=frozenset({CHAT})), host="rebound.example")
    answers = [
        client.options("/query", headers={"Origin": CHAT, **PREFLIGHT}),
        client.post("/search", json={"query": "boat"}, headers={"Origin": CHAT}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403]


def test_the_cookie_of_this_servers_page_is_of_no_use_to_a_named_origin(
    kb: KnowledgeBase,
) -> None:
    client = client_of(kb, security_for("127.0.0.1", "s3cret", origins=[CHAT]))
    link = client.post("/open", headers=TOKEN).json()["path"]
    assert client.get(link, follow_redirects=False).status_code == 303
    assert client.get("/status").status_code == 200  # the cookie lets in
    page = {"Origin": CHAT, "Sec-Fetch-Site": "cross-site"}
    assert client.get("/status", headers=page).status_code == 403


def test_origins_are_compared_as_browsers_send_them() -> None:
    texts = ["https://Chat.Example.org:443/", "http://[::1]:80", "app://obsidian.md"]
    assert allowed_origins(texts) == {CHAT, "http://[::1]", "app://obsidian.md"}


@pytest.mark.parametrize(
    "text", ["*", "null", "", "chat.example.org", "https://a/b", "https://a b"]
)
def test_what_is_no_origin_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(InputError, match="Not an origin"):
        security_for("127.0.0.1", None, origins=[text])
