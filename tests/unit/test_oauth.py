"""Tokens of an OAuth issuer: the metadata that lead to it, and what its tokens open."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.testclient import TestClient

from qmd import KnowledgeBase
from qmd.errors import InputError
from qmd.server import oauth
from qmd.server.app import build_app
from qmd.server.oauth import METADATA_PATH, TokenIssuer, check_options
from qmd.server.security import Security
from tests.support.live import until

RESOURCE = "https://notes.example.org/mcp"


class Issuer:
    """An authorization server on a real socket, which publishes one key."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.requests: list[str] = []
        self.keys: object = {"keys": [self.public_key("first")]}
        self.keys_at = "/keys"
        #: The next requests for keys wait for this.
        self.answers = threading.Event()
        self.answers.set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append(self.path)
                if self.path == "/keys":
                    issuer.answers.wait(20)
                documents: dict[str, Any] = {
                    "/.well-known/openid-configuration": {
                        "issuer": issuer.url,
                        "jwks_uri": urljoin(issuer.url, issuer.keys_at),
                    },
                    "/keys": issuer.keys,
                }
                value = documents.get(self.path)
                body = json.dumps(value).encode()
                self.send_response(404 if value is None else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True)
        self._thread.start()

    def public_key(self, key_id: str) -> dict[str, Any]:
        public = jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**public, "kid": key_id, "alg": "ES256", "use": "sig"}

    def token(self, scope: str, *, key: Any = None, algorithm: str = "ES256", **more: Any) -> str:
        headers = {"kid": more.pop("kid", "first"), "typ": "at+jwt"}
        claims = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "anna",
            "exp": int(time.time()) + 600,
            "scope": scope,
            **more,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, key or self.key, algorithm, headers)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture
def new_issuer() -> Iterator[Issuer]:
    """One of its own, whose answers a test may change."""
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture(scope="module")
def client(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("oauth")
    for name in ("work", "inbox", "two words"):
        (root / name).mkdir()
        (root / name / f"{name}.md").write_text(f"# {name}\n\nrocket\n", encoding="utf-8")
    with KnowledgeBase.open(root / "index.sqlite", create=True) as kb:
        for name in ("work", "inbox", "two words"):
            kb.add_collection(root / name)
        kb.index()
        app = build_app(
            kb,
            security=Security(token="admin"),
            oauth=check_options(issuer.url, RESOURCE),
        )
        with TestClient(app, base_url="http://localhost") as client:
            yield client


def hits(client: TestClient, token: str) -> set[str]:
    answer = client.post(
        "/search", json={"query": "rocket"}, headers={"authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    return {hit["file"] for hit in answer.json()["results"]}


def test_a_client_learns_where_to_ask_for_a_token(client: TestClient, issuer: Issuer) -> None:
    refused = client.post("/mcp", json={})
    assert refused.status_code == 401
    url = "https://notes.example.org/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{url}"' in refused.headers["www-authenticate"]
    for path in (METADATA_PATH, f"{METADATA_PATH}/mcp"):
        metadata = client.get(path).json()
        assert metadata["resource"] == RESOURCE
        assert metadata["authorization_servers"] == [issuer.url]
        assert "work" not in json.dumps(metadata)


def test_the_scopes_of_a_token_open_collections(client: TestClient, issuer: Issuer) -> None:
    assert hits(client, issuer.token("qmd:read:work openid")) == {"work/work.md"}
    assert hits(client, issuer.token("qmd:read:two%20words")) == {"two words/two words.md"}
    both = issuer.token("qmd:read:work qmd:write:inbox")
    assert hits(client, both) == {"work/work.md", "inbox/inbox.md"}
    edit = {"action": "append", "text": "more"}
    headers = {"authorization": f"Bearer {both}"}
    written = client.post("/edit_note", json={"file": "inbox/inbox", **edit}, headers=headers)
    assert written.status_code == 200, written.text
    refused = client.post("/edit_note", json={"file": "work/work", **edit}, headers=headers)
    assert refused.status_code == 403


def test_a_token_without_a_scope_of_qmd_opens_nothing(client: TestClient, issuer: Issuer) -> None:
    headers = {"authorization": f"Bearer {issuer.token('openid')}"}
    answer = client.get("/status", headers=headers)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_a_token_that_is_not_of_the_issuer_for_this_server_is_refused(
    client: TestClient, issuer: Issuer
) -> None:
    scope = "qmd:read:work"
    other = ec.generate_private_key(ec.SECP256R1())
    public = json.dumps(issuer.public_key("first")).encode()
    for token in (
        issuer.token(scope, aud="https://elsewhere.example.org/mcp"),
        issuer.token(scope, aud=None),
        issuer.token(scope, iss="https://elsewhere.example.org"),
        issuer.token(scope, exp=int(time.time()) - 600),
        issuer.token(scope, exp=None),
        issuer.token(scope, sub=None),
        issuer.token(scope, nbf=int(time.time()) + 600),
        issuer.token(scope, key=other),
        issuer.token(scope, key=rsa.generate_private_key(65537, 2048), algorithm="RS256"),
        issuer.token(scope, key=public * 2, algorithm="HS256"),
        issuer.token(scope, kid="second"),
        jwt.encode({"aud": RESOURCE, "sub": "anna"}, None, "none", {"kid": "first"}),
        issuer.token(scope)[:-4] + "AAAA",
        "eyJ.e.e",
        "eyJ" + "x" * 20_000 + ".e.e",
    ):
        answer = client.get("/status", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 401, token
        assert "resource_metadata=" in answer.headers["www-authenticate"]


def test_the_keys_are_not_read_for_each_unknown_one(client: TestClient, issuer: Issuer) -> None:
    hits(client, issuer.token("qmd:read:work"))
    before = len(issuer.requests)
    for number in range(5):
        token = issuer.token("qmd:read:work", kid=f"unknown-{number}")
        client.get("/status", headers={"authorization": f"Bearer {token}"})
    assert len(issuer.requests) == before


@pytest.mark.parametrize("url", ["ftp://x", "notes", "http://login.example.org", "https://"])
def test_an_issuer_needs_an_encrypted_url(url: str) -> None:
    with pytest.raises(InputError):
        check_options(url, RESOURCE)


def test_the_token_of_the_administrator_is_as_before(client: TestClient, tmp_path: Path) -> None:
    answer = client.get("/status", headers={"authorization": "Bearer admin"})
    assert answer.json()["total_documents"] == 3


@pytest.mark.parametrize(
    "keys", [{"keys": 5}, {"keys": [5]}, {"keys": []}, {}, {"keys": [{"kty": "RSA", "n": 1}]}]
)
def test_keys_that_are_none_let_nobody_in(new_issuer: Issuer, keys: object) -> None:
    new_issuer.keys = keys
    assert (
        TokenIssuer(check_options(new_issuer.url, RESOURCE)).scope_of(read_work(new_issuer)) is None
    )


def test_keys_are_read_from_the_web_alone(new_issuer: Issuer) -> None:
    new_issuer.keys_at = "ftp://nowhere"
    assert (
        TokenIssuer(check_options(new_issuer.url, RESOURCE)).scope_of(read_work(new_issuer)) is None
    )


def read_work(issuer: Issuer) -> str:
    return issuer.token("qmd:read:work")


def test_nobody_waits_for_an_issuer_that_is_slow_but_who_needs_its_keys(
    new_issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = new_issuer
    tokens = TokenIssuer(check_options(issuer.url, RESOURCE))
    scope = tokens.scope_of(read_work(issuer))
    assert scope is not None
    monkeypatch.setattr(oauth, "RETRY_S", -1.0)
    issuer.answers.clear()
    asked = len(issuer.requests)
    unknown = issuer.token("qmd:read:work", kid="unknown")
    waiting = threading.Thread(target=tokens.scope_of, args=[unknown])
    waiting.start()
    until(lambda: "/keys" in issuer.requests[asked:])
    others: list[object] = []
    answered = threading.Thread(
        target=lambda: others.extend(
            (tokens.is_valid(scope), tokens.scope_of(issuer.token("qmd:read:work")))
        )
    )
    answered.start()
    answered.join(20)
    issuer.answers.set()
    waiting.join(20)
    assert others == [True, scope]


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"scope": 5}, 403),
        ({"scope": None}, 403),
        ({"scope": {"qmd:read:work": 1}}, 403),
        ({"scope": [5, None]}, 403),
        ({"scope": "qmd:read:\ud800"}, 403),
        ({"scope": "qmd:read:a%00b qmd:read: qmd:write:%2A"}, 403),
        ({"scope": ["qmd:read:work", 5]}, 200),
        ({"scope": None, "scp": ["qmd:read:work"]}, 200),
        ({"exp": 10**400}, 200),
        ({"sub": "\ud800\0"}, 200),
    ],
)
def test_odd_claims_of_the_issuer_are_no_error(
    client: TestClient, issuer: Issuer, claims: dict[str, Any], status: int
) -> None:
    signed = {
        "iss": issuer.url,
        "aud": RESOURCE,
        "sub": "anna",
        "exp": int(time.time()) + 600,
        "scope": "qmd:read:work",
        **claims,
    }
    payload = json.dumps(signed).encode()
    token = jwt.PyJWS().encode(payload, issuer.key, "ES256", {"kid": "first"})
    answer = client.get("/status", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == status, answer.text


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
@pytest.mark.parametrize(("bits", "use"), [(1024, "sig"), (2048, "enc")])
def test_keys_that_must_not_sign_let_nobody_in(new_issuer: Issuer, bits: int, use: str) -> None:
    key = rsa.generate_private_key(65537, bits)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    new_issuer.keys = {
        "keys": [new_issuer.public_key("first"), {**public, "kid": "other", "use": use}]
    }
    tokens = TokenIssuer(check_options(new_issuer.url, RESOURCE))
    assert tokens.scope_of(read_work(new_issuer)) is not None
    token = new_issuer.token("qmd:read:work", key=key, algorithm="RS256", kid="other")
    assert tokens.scope_of(token) is None
