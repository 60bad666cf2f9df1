"""
Expansion and reranking by a model server, as a knowledge base does them: real HTTP, and every
way in which a server can misbehave.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.corpus import Corpus
from support.model_server import Call, ModelServer, Step, fails, hangs, resets, says, sends

from qmd import KnowledgeBase
from qmd.inference.assistant import RerankEndpoint
from qmd.inference.llm import LlmSettings
from qmd.inference.llm.endpoint import ModelEndpoint
from qmd.inference.protocols import Expansion
from qmd.settings import BackendSettings, Settings
from qmd.store.sql.shared import MAX_ANSWERS
from qmd.values import SearchReply

TINY_S = 0.05
AMPLE_S = 60.0
KEY = "sk-secret-0123456789"

PAGES = {
    "boat.md": "# Boat\n\nA red boat lies in the harbour.\n",
    "ship.md": "# Ship\n\nThe ship crossed the ocean.\n",
    "town.md": "# Town\n\nA red house stands in the town.\n",
}
LINES = "lex: ship ocean\nvec: what crossed the sea\nhyde: The vessel crossed the ocean."


def drips(*, head: bool = False) -> Step:
    """A byte at a time, for ever: each comes in time, the reply never does."""

    def step(call: Call) -> None:
        handler = call._handler
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"X: " if head else b"\r\n"))
        while not call.closing.wait(0.01):
            handler.wfile.write(b"y")
            handler.wfile.flush()

    return step


def redirects(target: str) -> Step:
    return lambda call: call.answer(302, "text/plain", b"", Location=target)


def ranks(*values: float) -> Step:
    """A ``/rerank`` reply, the last passage first."""
    rows = [{"index": i, "relevance_score": value} for i, value in enumerate(values)]
    return lambda call: call.answer_json({"results": rows[::-1]})


def speaks_no_http() -> Step:
    def step(call: Call) -> None:
        call._handler.wfile.write(b"220 smtp.example ESMTP\r\n")
        call._handler.close_connection = True

    return step


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("backends"))
    made.fill(PAGES)
    made.kb.embed()
    yield made
    made.store.close()


@pytest.fixture(autouse=True)
def nothing_remembered(corpus: Corpus) -> None:
    corpus.store.write(lambda writer: writer.connection.execute("DELETE FROM z_model_cache"))


Asking = Callable[..., KnowledgeBase]


@pytest.fixture
def asking(corpus: Corpus) -> Asking:
    """A knowledge base whose models are at a server."""

    def make(server: ModelServer, **settings: Any) -> KnowledgeBase:
        given = {"llm_url": server.url, "llm_model": "tiny", "budget_s": AMPLE_S} | settings
        return KnowledgeBase(
            corpus.store, Settings(embedder=corpus.embedder, backends=BackendSettings(**given))
        )

    return make


def lists_of(reply: SearchReply) -> set[tuple[str, str, str]]:
    return {
        (part["source"], part["type"], part["query"])
        for hit in reply.hits
        for part in (hit.explain or {})["lists"]
    }


def settled(corpus: Corpus) -> dict[str, int]:
    """What is remembered, by kind, once what was queued is written."""

    def count(writer: Any) -> dict[str, int]:
        return dict(
            writer.connection.execute("SELECT kind, count(*) FROM z_model_cache GROUP BY kind")
        )

    return corpus.store.write(count)


# --- expansion -----------------------------------------------------------------------


def test_a_language_model_expands_the_query(asking: Asking) -> None:
    with ModelServer(says(LINES)) as server:
        kb = asking(server, expander="llm")
        reply = kb.query("red boat", limit=None, rerank=False, explain=True)
    assert reply.degraded is None
    assert lists_of(reply) == {
        ("fts", "original", "red boat"),
        ("vec", "original", "red boat"),
        ("fts", "expansion", "ship ocean"),
        ("vec", "expansion", "what crossed the sea"),
        ("vec", "expansion", "The vessel crossed the ocean."),
    }
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body["model"] == "tiny"
    assert "red boat" in request.messages[-1]["content"]


def test_the_model_of_the_setting_beats_the_general_one(asking: Asking) -> None:
    with ModelServer(says(LINES)) as server:
        asking(server, expander="llm:other/model:4b").query("red boat")
    assert server.requests[0].body["model"] == "other/model:4b"


def test_what_was_asked_once_is_not_asked_again(corpus: Corpus, asking: Asking) -> None:
    with ModelServer(says(LINES), fails(500)) as server:
        first = asking(server, expander="llm").query("red boat", explain=True)
        assert settled(corpus) == {"expansion": 1}
        again = asking(server, expander="llm").query("red boat", explain=True)
        assert again == first
        other = asking(server, expander="llm:other").query("red boat")
    assert len(server.requests) == 2
    assert other.degraded


def test_a_model_that_takes_no_options_is_asked_without_them(asking: Asking) -> None:
    told = "Unsupported parameter: 'max_tokens' is not supported with this model."
    with ModelServer(fails(400, told), says(LINES)) as server:
        kb = asking(server, expander="llm")
        assert kb.query("red boat").degraded is None
        assert kb.query("red house").degraded is None
    assert ["max_tokens" in request.body for request in server.requests] == [True, False, False]


def test_without_an_expander_or_asked_not_to_nobody_is_asked(asking: Asking) -> None:
    with ModelServer(says(LINES)) as server:
        asking(server, expander="none", reranker="none").query("red boat")
        asking(server).query("red boat")
        asking(server, expander="llm", reranker="llm").query("red boat", expand=False, rerank=False)
    assert server.requests == []


# --- reranking -----------------------------------------------------------------------


def order(reply: SearchReply) -> list[str]:
    return [hit.path for hit in reply.hits]


def marks(reply: SearchReply) -> dict[str, float]:
    return {hit.path: (hit.explain or {})["rerank"] for hit in reply.hits}


def by_word(word: str) -> Step:
    """``/rerank``: .9 for passages with the word, else .1."""

    def step(call: Call) -> None:
        ranks(*(0.9 if word in text else 0.1 for text in call.request.body["documents"]))(call)

    return step


def test_a_rerank_endpoint_gives_the_scores(asking: Asking) -> None:
    with ModelServer(by_word("town")) as server:
        reply = asking(server, reranker="rerank:judge").query("red", explain=True)
    assert reply.degraded is None
    found = marks(reply)
    assert found["town.md"] == 0.9
    assert found["boat.md"] == 0.1
    (request,) = server.requests
    assert request.path == "/v1/rerank"
    assert request.body["model"] == "judge"
    assert request.body["query"] == "red"


def test_a_server_without_reranking_gives_marks_and_is_not_asked_twice(asking: Asking) -> None:
    def step(call: Call) -> None:
        if call.request.path.endswith("/rerank"):
            fails(404)(call)
            return
        count = call.request.messages[-1]["content"].count("\n[")
        says(json.dumps([10 if n == 0 else 5 for n in range(count)]))(call)

    with ModelServer(step) as server:
        kb = asking(server, reranker="llm")
        first = kb.query("red boat", explain=True)
        kb.query("ship", explain=True)
    assert first.degraded is None
    assert set(marks(first).values()) == {1.0, 0.5}
    paths = [request.path.rpartition("/")[2] for request in server.requests]
    assert paths == ["rerank", "completions", "completions"]


def test_marks_alone_can_be_asked_for(asking: Asking) -> None:
    with ModelServer(says("[10, 0, 5]")) as server:
        assert asking(server, reranker="chat:m").query("red boat ship").degraded is None
    assert server.requests[0].path == "/v1/chat/completions"


def test_only_new_passages_are_scored(corpus: Corpus, asking: Asking) -> None:
    with ModelServer(by_word("red")) as server:
        kb = asking(server, reranker="rerank:m")
        kb.query("red boat ship", limit=None, candidates=2)
        assert settled(corpus) == {"score": 2}
        kb.query("red boat ship", limit=None, candidates=3)
        assert settled(corpus) == {"score": 3}
        again = kb.query("red boat ship", limit=None, candidates=3, explain=True)
    assert [len(request.body["documents"]) for request in server.requests] == [2, 1]
    assert None not in marks(again).values()


def test_long_passages_are_cut_and_cut_again_where_the_server_refuses_them() -> None:
    def step(call: Call) -> None:
        texts = call.request.body["documents"]
        if max(map(len, texts)) > 800:
            fails(500, "input is too large to process")(call)
        else:
            ranks(*(0.5 for _ in texts))(call)

    with ModelServer(step) as server:
        judge = RerankEndpoint(ModelEndpoint(LlmSettings(url=server.url)), "m")
        long = ["word " * 2000, "数据库" * 2000, "short"]
        for _ in range(2):
            assert judge.rerank("q", long, timeout_s=AMPLE_S) == [0.5] * 3
    sizes = [[len(text) for text in request.body["documents"]] for request in server.requests]
    assert sizes == [[1600, 400, 5], [600, 150, 5], [600, 150, 5]]


def test_logits_become_shares_by_one_rule_for_all_replies_of_a_server() -> None:
    with ModelServer(ranks(0.5, 0.25), ranks(-3.0, 0.5, 8.0, -1e300), ranks(0.5, 0.25)) as server:
        judge = RerankEndpoint(ModelEndpoint(LlmSettings(url=server.url)), "m")
        plain, logits, by_chance = (
            judge.rerank("q", ["text"] * count, timeout_s=AMPLE_S) for count in (2, 4, 2)
        )
    assert plain == [0.5, 0.25]
    assert logits[3] < logits[0] < 0.5 < logits[1] < logits[2] <= 1
    assert logits[1] == pytest.approx(0.6225, abs=1e-4)
    assert by_chance == pytest.approx([0.6225, 0.5622], abs=1e-4)


def test_a_server_of_its_own_for_reranking(asking: Asking) -> None:
    with ModelServer(says(LINES)) as language, ModelServer(by_word("red")) as judge:
        kb = asking(language, expander="llm", reranker="rerank:m", rerank_url=judge.url)
        assert kb.query("red boat").degraded is None
    assert [request.path for request in language.requests] == ["/v1/chat/completions"]
    assert [request.path for request in judge.requests] == ["/v1/rerank"]


# --- trouble -------------------------------------------------------------------------

BROKEN: dict[str, tuple[Step, str]] = {
    "500": (fails(500, "out of memory"), "out of memory"),
    "429": (fails(429, "slow down"), "slow down"),
    "401": (fails(401, f"wrong key {KEY}"), "401"),
    "html": (sends(b"<html>hello</html>", "text/html"), "no JSON"),
    "half of JSON": (sends(b'{"choices": [{"mess'), "no JSON"),
    "deep JSON": (sends(b"[" * 100_000), "no JSON"),
    "another shape": (sends(b'{"choices": "none", "results": 5}'), "Not"),
    "null": (sends(b"null"), "Not"),
    "huge": (sends(b'"' + b"x" * (10 << 20) + b'"'), "more than 1 MB"),
    "redirect": (redirects("http://127.0.0.1:9/v1"), "302"),
    "no HTTP": (speaks_no_http(), "does not speak HTTP"),
    "reset": (resets(), "Cannot reach"),
    "prose": (says("I would rather not."), "Not"),
    "nothing": (says(None), "Not"),
    "NaN": (says("[NaN, NaN, NaN]"), "Not"),
}
SLOW: dict[str, Step] = {"silent": hangs(), "drips": drips(), "drips its head": drips(head=True)}
ROLES = ({"expander": "llm"}, {"reranker": "chat:m"}, {"reranker": "rerank:m"})


@pytest.mark.parametrize("role", ROLES, ids=lambda role: "-".join(role.values()))
@pytest.mark.parametrize("trouble", BROKEN)
@pytest.mark.unmeasured
def test_a_broken_server_takes_away_its_own_part_alone(
    corpus: Corpus, asking: Asking, trouble: str, role: dict[str, str]
) -> None:
    plain = corpus.kb.query("red boat")
    step, told = BROKEN[trouble]
    with ModelServer(step) as server:
        reply = asking(server, key=lambda _: KEY, **role).query("red boat")
    assert reply.hits == plain.hits
    assert reply.degraded is not None
    assert reply.degraded.startswith("Not expanded" if "expander" in role else "Not reranked")
    assert told in reply.degraded
    assert KEY not in reply.degraded
    assert settled(corpus) == {}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: "-".join(role.values()))
@pytest.mark.parametrize("trouble", SLOW)
def test_a_slow_server_is_left_behind(
    corpus: Corpus, asking: Asking, trouble: str, role: dict[str, str]
) -> None:
    plain = corpus.kb.query("red boat")
    with ModelServer(SLOW[trouble]) as server:
        reply = asking(server, budget_s=TINY_S, **role).query("red boat")
    assert reply.hits == plain.hits
    assert reply.degraded is not None
    assert "has not answered within" in reply.degraded


def test_a_call_to_a_slow_server_ends_itself(asking: Asking) -> None:
    def model_threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "qmd-model"]

    with ModelServer(drips()) as server:
        asking(server, budget_s=TINY_S, expander="llm").query("red boat")
        for thread in model_threads():
            thread.join(AMPLE_S)
        assert model_threads() == []


def test_nobody_there_is_said_too(corpus: Corpus, asking: Asking) -> None:
    with ModelServer(says("")) as server:
        kb = asking(server, expander="llm", reranker="llm")
    reply = kb.query("red boat")
    assert reply.hits == corpus.kb.query("red boat").hits
    assert "Connection refused" in (reply.degraded or "")


def test_after_some_failures_a_server_is_left_alone(asking: Asking) -> None:
    with ModelServer(fails(500)) as server:
        kb = asking(server, expander="llm")
        replies = [kb.query(f"red boat {number}") for number in range(5)]
    assert len(server.requests) == 2
    assert all(reply.degraded for reply in replies)
    assert "is not asked for" in (replies[-1].degraded or "")


def test_a_slow_expander_leaves_the_reranker_its_time(asking: Asking) -> None:
    with ModelServer(hangs()) as slow, ModelServer(by_word("red")) as judge:
        kb = asking(slow, expander="llm", reranker="rerank:m", rerank_url=judge.url, budget_s=3.0)
        reply = kb.query("red boat", explain=True)
    assert "Not expanded" in (reply.degraded or "")
    assert 0.9 in marks(reply).values()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"expander": "magic"}, "Not an expander: magic"),
        ({"expander": "llm", "llm_url": "ftp://host"}, "Not the address"),
        ({"expander": "llm", "llm_url": "http://me:pw@host"}, "must hold no user name"),
        ({"reranker": "llm", "rerank_url": "nonsense"}, "Not the address"),
        ({"reranker": "rerank:m"}, "Neither QMD_RERANK_URL (rerank_url) nor QMD_LLM_URL"),
        ({"reranker": "llm"}, "DeepSeek (https://api.deepseek.com) wants a key"),
        ({"expander": "llm"}, "DeepSeek (https://api.deepseek.com) wants a key"),
    ],
)
def test_a_wrong_setting_fails_no_query(
    corpus: Corpus, settings: dict[str, str], told: str
) -> None:
    backends = BackendSettings(**settings)  # type: ignore[arg-type]
    kb = KnowledgeBase(corpus.store, Settings(embedder=corpus.embedder, backends=backends))
    reply = kb.query("red boat")
    assert reply.hits == corpus.kb.query("red boat").hits
    assert told in (reply.degraded or "")


# --- keys ----------------------------------------------------------------------------


def test_the_key_goes_to_its_own_server_alone(asking: Asking) -> None:
    with ModelServer(says(LINES)) as language, ModelServer(by_word("red")) as judge:
        kb = asking(
            language,
            expander="llm",
            reranker="rerank:m",
            rerank_url=judge.url,
            key=lambda role: KEY if role == "llm" else None,
        )
        kb.query("red boat")
    assert language.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in judge.requests[0].headers


def test_the_key_is_shown_nowhere() -> None:
    settings = BackendSettings(llm_url="http://127.0.0.1:1", key=lambda _: KEY)
    assert KEY not in repr(settings) + repr(settings.server())


def test_a_proxy_is_not_asked_for_this_machine(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ModelServer(says(LINES)) as server:
        assert asking(server, expander="llm").query("red boat").degraded is None


def test_a_proxy_is_asked_for_others(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ModelServer(says(LINES)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("://", "://me:pass%20word@"))
        backends = BackendSettings(
            expander="llm", llm_url="http://models.example/v1", budget_s=AMPLE_S
        )
        kb = KnowledgeBase(corpus.store, Settings(embedder=corpus.embedder, backends=backends))
        assert kb.query("red boat").degraded is None
    (request,) = proxy.requests
    assert request.path == "http://models.example/v1/chat/completions"
    assert request.headers["proxy-authorization"] == "Basic bWU6cGFzcyB3b3Jk"


# --- the cache -----------------------------------------------------------------------


def test_the_oldest_answers_are_forgotten(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAX_ANSWERS, "expansion", 3)

    def run(writer: Any) -> set[bytes]:
        writer.model_cache.put("score", "m", {b"s": b"1"})
        for number in range(10):
            writer.model_cache.put("expansion", "m", {bytes([number]): b"x"})
        writer.model_cache.put("expansion", "m", {bytes([8]): b"y", b"big": b"x" * 20_000})
        kept = writer.model_cache.get("expansion", "m", [bytes([n]) for n in range(10)])
        assert kept[bytes([8])] == b"y"
        assert writer.model_cache.get("score", "m", [b"s"])
        assert not writer.model_cache.get("expansion", "m", [b"big"])
        return set(kept)

    assert corpus.store.write(run) == {bytes([7]), bytes([8]), bytes([9])}


def test_with_a_read_only_database_answers_are_remembered_while_it_is_open(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(_folder(tmp_path), name="notes")
        kb.index()
    with (
        ModelServer(says(LINES)) as server,
        KnowledgeBase.open(
            tmp_path / "kb.sqlite",
            Settings(
                backends=BackendSettings(expander="llm", llm_url=server.url, budget_s=AMPLE_S)
            ),
            read_only=True,
        ) as kb,
    ):
        for _ in range(2):
            assert "ship.md" in order(kb.query("red boat"))
        assert len(server.requests) == 1
        with kb._store.reading() as reader:
            assert reader.model_cache.count() == 0


def test_another_process_that_writes_does_not_hold_up_a_query(tmp_path: Path) -> None:
    backends = BackendSettings(expander="llm", budget_s=AMPLE_S)
    with (
        ModelServer(says(LINES)) as server,
        _opened(tmp_path, server, backends) as kb,
        _opened(tmp_path, server, backends) as other,
    ):
        blocked, release = threading.Event(), threading.Event()

        def block(connection: Any) -> None:
            blocked.set()
            release.wait(AMPLE_S)

        holder = threading.Thread(target=lambda: other._store.write(block))
        holder.start()
        try:
            assert blocked.wait(AMPLE_S)
            for _ in range(2):  # nor is the model asked twice while its answer waits there
                assert "ship.md" in order(kb.query("red boat"))
            assert len(server.requests) == 1
            kb._store.close()  # waits for what was queued, which gives up soon
        finally:
            release.set()
            holder.join(AMPLE_S)


@contextmanager
def _opened(
    directory: Path, server: ModelServer, backends: BackendSettings
) -> Iterator[KnowledgeBase]:
    path = directory / "kb.sqlite"
    new = not path.exists()
    settings = replace(backends, llm_url=server.url)
    with KnowledgeBase.open(path, Settings(backends=settings), create=True) as kb:
        if new:
            kb.add_collection(_folder(directory), name="notes")
            kb.index()
        yield kb


def _folder(directory: Path) -> Path:
    folder = directory / "notes"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_an_expansion_may_be_hostile(asking: Asking) -> None:
    hostile = (
        'lex: "unclosed -title: OR ( NEAR/2\nlex: -red -boat\nvec: \x00\ud800\nhyde: ' + "x" * 9999
    )
    with ModelServer(says(hostile)) as server:
        reply = asking(server, expander="llm").query("red boat")
    assert order(reply)[0] == "boat.md"


def test_expansions_have_their_own_type() -> None:
    assert Expansion("lex", "a") != Expansion("vec", "a")


def test_vsearch_asks_in_other_words_too_unless_told_not_to(asking: Asking) -> None:
    with ModelServer(says(LINES)) as server:
        kb = asking(server, expander="llm")
        plain = kb.vsearch("boat", min_score=0, expand=False)
        reply = kb.vsearch("boat", min_score=0, intent="about vessels", explain=True)
    assert (plain.degraded, reply.degraded) == (None, None)
    (request,) = server.requests
    assert "about vessels" in request.messages[-1]["content"]
    asked = [(hit.explain or {}).get("expansion", {}).get("query") for hit in reply.hits]
    assert "The vessel crossed the ocean." in asked


def test_an_expander_alone_may_take_all_the_time(asking: Asking) -> None:
    with ModelServer(hangs()) as server:
        reply = asking(server, expander="llm", budget_s=0.4).query("red boat")
    assert "within 0.4 s" in (reply.degraded or "")


def test_what_a_server_says_of_its_error_is_one_plain_line(asking: Asking) -> None:
    with ModelServer(fails(500, "out\x1b[31m of\n\x00memory\u202e")) as server:
        reply = asking(server, expander="llm").query("red boat")
    assert "out [31m of memory" in (reply.degraded or "")
    assert (reply.degraded or "").isprintable()
