"""What goes wrong over REST: one shape, a readable text, never the inside of the server."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.embedder import HashEmbedder
from support.mcp_client import WAIT_S
from support.rest import client_of, rest_client
from support.vault import make_index

from qmd import KnowledgeBase, Settings
from qmd.errors import FileAccessError
from qmd.operations.texts import INTERNAL
from qmd.server import openapi
from qmd.server.app import build_app
from qmd.server.endpoints import ENDPOINTS
from qmd.server.failures import failure_of
from qmd.server.rest import Limits
from qmd.server.security import Security
from qmd.store.sqlite.library import connect

PLAN = "notes/2025/plan.md"
JSON = {"content-type": "application/json"}
MUTATING = [each for each in ENDPOINTS if each.operation.writes]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_index(tmp_path)


@pytest.fixture
def kb(database: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as opened:
        yield opened


@pytest.fixture
def client(kb: KnowledgeBase) -> Iterator[httpx.Client]:
    with rest_client(kb) as asked:
        yield asked


def detail(response: Any, status: int) -> str:
    body = response.json()
    assert response.headers["content-type"] == "application/json"
    assert list(body) == ["detail", "status_code"]
    assert response.status_code == body["status_code"] == status, body
    assert isinstance(body["detail"], str)
    return body["detail"]


# --- routes and methods --------------------------------------------------------------


@pytest.mark.parametrize("path", ["/nothing", "/search/", "/SEARCH", "/collections/a/b", "/%00"])
def test_an_unknown_route_names_the_description_of_all(client: httpx.Client, path: str) -> None:
    assert "/openapi.json" in detail(client.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/search", "POST, OPTIONS"),
        ("POST", "/status", "GET, HEAD, OPTIONS"),
        ("PATCH", "/collections/notes", "GET, HEAD, DELETE, PUT, OPTIONS"),
        ("GET", "/contexts/notes", "DELETE, OPTIONS"),
        ("BREW", "/events", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    response = client.request(method, path)
    assert allowed in detail(response, 405)
    assert response.headers["allow"] == allowed
    options = client.options(path)
    assert (options.status_code, options.headers["allow"]) == (204, allowed)


def test_a_path_without_a_token_takes_no_body(kb: KnowledgeBase) -> None:
    with client_of(build_app(kb, security=Security(token="admin"))) as client:
        refused = client.request("GET", "/health", content=b"x")
        assert "takes no body" in detail(refused, 413)
    described = openapi.document()["paths"]
    assert "413" in described["/health"]["get"]["responses"]
    not_found = described["/chats/{chat}/events"]["get"]["responses"]["404"]
    assert "`chat_not_found`" in not_found["description"]


@pytest.mark.parametrize("path", ["/status", "/health", "/collections/notes", "/events"])
def test_head_says_what_get_would(client: httpx.Client, path: str) -> None:
    head = client.head(path)
    assert head.status_code == 200
    if path != "/events":
        got = client.get(path)
        assert head.headers["content-type"] == got.headers["content-type"]


# --- bodies --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"query":', "not JSON"),
        (b"query=boats", "not JSON"),
        (b'{"query": NaN}', "NaN is no JSON"),
        (b'{"query": "x", "limit": 1e999}', "limit must be an integer from 1 to 1000"),
        (b'{"query": ' + b"9" * 5000 + b"}", "an integer has more than 4,300 digits"),
        (b'{"query": "x", "limit": ' + b"9" * 4000 + b"}", "limit may be 9,007,199,254,740,991"),
        (b"[" * 100_000, "nested too deeply"),
        (b'"boats"', "must be a JSON object"),
        (b'["boats"]', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"query": "\xff"}', "not UTF-8"),
        (b'\xef\xbb\xbf{"query": "x"}', "not JSON"),
        ('{"query": "x"}'.encode("utf-16"), "not UTF-8"),
        (b'{"\\udfff": 1}', 'unknown argument "\ufffd"'),
        (b"", "query is required (a string)"),
        (b"{}", "query is required (a string)"),
        (b'{"query": null}', "query must be a string, got null"),
        (b'{"query": 3}', "query must be a string, got 3"),
        (b'{"query": "x", "limit": 0}', "limit must be an integer from 1 to 1000, got 0"),
        (b'{"query": "x", "limit": true}', "limit must be an integer from 1 to 1000"),
        (b'{"query": "x", "limit": "5"}', 'limit must be an integer from 1 to 1000, got "5"'),
        (b'{"query": "x", "min_score": 2}', "min_score must be a number from 0 to 1, got 2"),
        (b'{"query": "x", "tags": "a"}', "tags must be a list of strings"),
        (
            b'{"query": "x", "after": "soon"}',
            "after must be a date such as 2026-11-20, or a span such as 7d",
        ),
        (b'{"query": "x", "minscore": 0}', 'unknown argument "minscore" (did you mean min_score?)'),
        (
            b'{"query": "x", "limits": 3}',
            "known arguments: query, limit, min_score, collection, collections, path, tags,"
            " properties, after, before, sort, group_by, explain",
        ),
    ],
)
def test_a_bad_body_is_told_what_is_wrong(client: httpx.Client, body: bytes, said: str) -> None:
    assert said in detail(client.post("/search", content=body, headers=JSON), 400)


def test_a_part_that_no_ranking_has_is_told_those_it_has(client: httpx.Client) -> None:
    answer = client.post("/query", json={"query": "x", "without": ["vec"]})
    assert 'without must be a list of "words" or "nearest" or "whole" or' in detail(answer, 400)
    assert '"english" or "model", got ["vec"]' in answer.json()["detail"]


@pytest.mark.parametrize("body", [b" ", b"\n", b"\x0c"])
def test_blanks_are_no_json_even_where_a_body_may_be_left_out(
    client: httpx.Client, body: bytes
) -> None:
    assert client.post("/update", headers=JSON).status_code == 200
    assert "not JSON" in detail(client.post("/update", content=body, headers=JSON), 400)


def test_half_of_a_surrogate_pair_is_a_question_and_no_name(client: httpx.Client) -> None:
    body = b'{"query": "islands \\ud83d", "limit": 1}'
    for path in ("/search", "/query"):
        (hit,) = client.post(path, content=body, headers=JSON).json()["results"]
        assert hit["file"] == "notes/2025/plan.md"
    told = detail(client.post("/get", content=b'{"file": "\\ud800"}', headers=JSON), 400)
    assert "half of a surrogate pair" in told


def test_whole_numbers_and_nulls_are_what_they_mean(client: httpx.Client) -> None:
    body = {"query": "islands", "limit": 5.0, "collection": None, "path": "", "tags": None}
    assert len(client.post("/search", json=body).json()["results"]) == 1


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/x"],
)
def test_what_a_foreign_form_could_send_is_no_json(client: httpx.Client, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    body = b'{"query": "islands"}'
    assert "must be application/json" in detail(
        client.post("/search", content=body, headers=headers), 415
    )


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_by_any_of_its_names(client: httpx.Client, kind: str) -> None:
    response = client.post("/search", content=b'{"query": "x"}', headers={"content-type": kind})
    assert response.status_code == 200


def test_a_compressed_body_is_not_unpacked(client: httpx.Client) -> None:
    headers = JSON | {"content-encoding": "gzip"}
    detail(client.post("/search", content=b"\x1f\x8b", headers=headers), 415)


def test_a_body_over_the_limit(kb: KnowledgeBase) -> None:
    with rest_client(kb, security=Security(max_body=100)) as client:
        fits = b'{"query": "' + b"x" * 80 + b'"}'
        assert client.post("/search", content=fits, headers=JSON).status_code == 200
        said = detail(client.post("/search", content=fits + b" " * 20, headers=JSON), 413)
        assert said == "Request body too large (at most 100 bytes)"


def test_arguments_in_the_address_are_checked_too(client: httpx.Client) -> None:
    assert "limit must be an integer from 1 to 1000, got 0" in detail(
        client.get("/documents?limit=0"), 400
    )
    for query in ("limit=x", "limit=1&limit=2", "limit=1.5", "offset=-1", "offset=" + "9" * 30):
        detail(client.get(f"/documents?{query}"), 400)
    assert "known arguments: prefix, limit, offset" in detail(client.get("/documents?page=2"), 400)
    assert "known arguments: collection" in detail(client.get("/status?verbose=1"), 400)
    assert "known arguments: none" in detail(client.get("/contexts?verbose=1"), 400)
    assert "unknown argument" in detail(client.post("/search?limit=3", json={"query": "x"}), 400)
    assert client.get("/health?at=1").status_code == 200


# --- read-only, trouble, time --------------------------------------------------------


@pytest.mark.parametrize("endpoint", MUTATING, ids=lambda each: each.name)
def test_a_read_only_server_changes_nothing(kb: KnowledgeBase, endpoint: Any) -> None:
    path = endpoint.operation.path.replace("{name}", "notes").replace("{path}", "qmd://notes/2025")
    with rest_client(kb, read_only=True) as client:
        answer = client.request(endpoint.operation.method, path)
        said = detail(answer, 403)
        assert "without --read-only" in said
        assert answer.headers["qmd-error"] == "writes_forbidden"
        assert client.post("/search", json={"query": "islands"}).json()["results"]
    assert [each.name for each in kb.collections()] == ["notes"]
    assert len(kb.contexts()) == 1


def test_a_token_that_only_reads_is_no_read_only_server(kb: KnowledgeBase) -> None:
    refused = "This token opens nothing for writing."
    token = kb.create_token("reading", read=["notes"]).token
    headers = {"authorization": f"Bearer {token}", "accept-language": "en"}
    with client_of(build_app(kb, security=Security(token="admin"))) as client:
        for path in ("/edit_note", "/capture", "/index"):
            answer = client.post(path, json={}, headers=headers)
            assert refused in detail(answer, 403)
            assert "qmd server token create NAME --write COLLECTION" in answer.text
        for path in ("/new", "/add"):
            page = client.get(path, headers=headers).text
            assert "Your token only reads." in page
            assert "<p>This server only reads." not in page


def test_a_token_for_some_collections_adds_none(kb: KnowledgeBase, tmp_path: Path) -> None:
    """Nor would a write root of the server help, as is said to its administrator."""
    token = kb.create_token("writing", write=["notes"]).token
    headers = {"authorization": f"Bearer {token}"}
    new = {"name": "new", "path": str(tmp_path / "new"), "glob_pattern": "*"}
    with client_of(build_app(kb, security=Security(token="admin"))) as client:
        answer = client.post("/collections/add", json=new, headers=headers)
        assert answer.headers["Qmd-Error"] == "out_of_scope"
        assert "--write-root" not in detail(answer, 403)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (
            "/edit_note",
            {"file": PLAN, "action": "append", "text": "x", "if_docid": "#000000"},
            409,
            "file_changed",
        ),
        (
            "/edit_note",
            {"file": PLAN, "action": "replace", "old": "nowhere", "text": "x"},
            409,
            "edit_not_made",
        ),
        (
            "/edit_note",
            {"file": PLAN, "action": "append", "text": "x", "if_docid": ""},
            400,
            "invalid_input",
        ),
        ("/edit_note", {"file": PLAN, "action": "append"}, 400, "invalid_input"),
        (
            "/edit_note",
            {"file": PLAN, "action": "set_property", "property": "a"},
            400,
            "invalid_input",
        ),
        ("/edit_note", {"file": PLAN, "action": "tick"}, 400, "invalid_input"),
        ("/remember", {"about": "plan", "fact": "x", "until": "foo"}, 400, "invalid_input"),
        ("/remember", {"about": "///", "fact": "x"}, 400, "invalid_path"),
        ("/undo", {"change": 1, "session": True}, 400, "invalid_input"),
        ("/undo", {"change": 1, "redo": True}, 400, "invalid_input"),
        ("/delete_note", {"file": PLAN, "if_docid": ""}, 400, "invalid_input"),
        ("/move_note", {"file": PLAN, "new_path": "x", "if_docid": ""}, 400, "invalid_input"),
        ("/move_note", {"file": PLAN, "new_path": "../x.md"}, 400, "invalid_path"),
        ("/undo", {"change": 999}, 404, "not_found"),
    ],
)
def test_an_error_of_a_write_has_the_code_that_its_endpoint_lists(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    answer = client.post(path, json=body)  # the client compares each code with the list
    detail(answer, status)
    assert answer.headers["qmd-error"] == code


def test_what_the_system_refused_is_told() -> None:
    refused = FileAccessError("notes/a.md", PermissionError(errno.EACCES, "Permission denied"))
    answer = failure_of(refused).response()
    assert (answer.status_code, answer.headers["qmd-error"]) == (500, "file_access")
    assert b"Failed to write notes/a.md: Permission denied." in answer.body


def test_a_database_opened_read_only_refuses_what_changes_it(database: Path) -> None:
    with KnowledgeBase.open(database, read_only=True) as kb, rest_client(kb) as client:
        detail(client.delete("/collections/notes"), 403)


class BrokenModel(HashEmbedder):
    def embed_passages(self, texts: Any) -> Any:
        raise ZeroDivisionError("secret.py:17")


def test_the_inside_of_the_server_stays_in_its_log(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kb = KnowledgeBase.open(database, Settings(embedder=BrokenModel()))
    with kb, rest_client(kb) as client:
        unforeseen = client.post("/embed", json={"texts": ["a"]})
        kb.close()
        closed = client.get("/contexts")
    assert detail(closed, 500) == INTERNAL
    told = detail(unforeseen, 503)
    assert "failed: ZeroDivisionError." in told
    assert "secret" not in told
    assert "ZeroDivisionError: secret.py:17" in caplog.text
    assert "The database is closed." in caplog.text


class SlowModel(HashEmbedder):
    """Embeds when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.go_on = threading.Event()

    def embed_passages(self, texts: Any) -> Any:
        self.asked.release()
        assert self.go_on.wait(WAIT_S)
        return super().embed_passages(texts)


@pytest.fixture
def slow(database: Path) -> Iterator[tuple[KnowledgeBase, SlowModel]]:
    model = SlowModel()
    with KnowledgeBase.open(database, Settings(embedder=model)) as kb:
        yield kb, model
        model.go_on.set()


def test_a_request_over_its_time_is_told_so(slow: tuple[KnowledgeBase, SlowModel]) -> None:
    kb, model = slow
    with rest_client(kb, limits=Limits(embed_s=0.05)) as client:
        said = detail(client.post("/embed", json={"texts": ["a"]}), 503)
        assert said == "POST /embed took longer than 0.05 s. Try again, or ask for less."
        model.go_on.set()


def test_embeddings_wait_for_each_other_and_for_nobody_else(
    slow: tuple[KnowledgeBase, SlowModel],
) -> None:
    kb, model = slow
    with rest_client(kb) as client, ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(client.post, "/embed", json={"texts": ["a"]}) for _ in range(3)]
        assert model.asked.acquire(timeout=WAIT_S)
        assert client.post("/search", json={"query": "islands"}).json()["results"]
        assert client.get("/health").json()["status"] == "healthy"
        assert not model.asked.acquire(blocking=False), "two embed at once"
        model.go_on.set()
        assert [each.result(WAIT_S).status_code for each in asked] == [200] * 3


def test_what_changes_the_index_blocks_no_reader(
    client: httpx.Client, kb: KnowledgeBase, database: Path
) -> None:
    (Path(kb.collection("notes").path) / "new.md").write_text("# New\n", encoding="utf-8")
    other = connect(database, read_only=False)
    other.execute("BEGIN IMMEDIATE")  # nothing can be written now
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(client.post, "/index") for _ in range(4)]
        for _ in range(20):
            assert client.post("/search", json={"query": "islands"}).json()["results"]
            assert client.get("/collections").status_code == 200
        assert not any(each.done() for each in asked)
        other.execute("ROLLBACK")
        other.close()
        added = [each.result(WAIT_S).json()["changes"]["added"] for each in asked]
    assert sum(added) == 1  # each found what the one before it had left


def test_a_full_queue_says_come_back_later(slow: tuple[KnowledgeBase, SlowModel]) -> None:
    kb, model = slow
    with rest_client(kb, limits=Limits(max_waiting=0)) as client, ThreadPoolExecutor(1) as threads:
        first = threads.submit(client.post, "/embed", json={"texts": ["a"]})
        assert model.asked.acquire(timeout=WAIT_S)
        second = client.post("/embed", json={"texts": ["a"]})
        assert "Too many requests are waiting" in detail(second, 503)
        assert second.headers["retry-after"] == "1"
        model.go_on.set()
        assert first.result(WAIT_S).status_code == 200
