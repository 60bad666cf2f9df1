"""Embedding models behind a server: batches, tries, long texts, and servers that misbehave."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.model_server import Call, ModelServer, Step, fails, hangs, resets, sends

from qmd import KnowledgeBase
from qmd.errors import ConfigError, InferenceError, ModelMismatchError, TransientInferenceError
from qmd.inference import embedding_endpoint
from qmd.inference.embedding_endpoint import EndpointEmbedder
from qmd.inference.llm import LlmSettings
from qmd.inference.llm.endpoint import ModelEndpoint
from qmd.settings import BackendSettings, Settings

AMPLE_S = 60.0
DIMENSION = 16


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Counts hashed words: not of unit length, as some servers' vectors are not."""
    found = [0.0] * dimension
    for word in text.lower().split():
        found[hashlib.sha256(word.encode()).digest()[0] % dimension] += 1.0
    return found if any(found) else [1.0] * dimension


def embeds(
    dimension: int = DIMENSION,
    *,
    longest: int = 1_000_000,
    refusal: int = 400,
    coded: bool = False,
) -> Step:
    """An embedding server; a text of more than ``longest`` characters is refused."""

    def step(call: Call) -> None:
        texts = call.request.body["input"]
        if any(len(text) > longest for text in texts):
            fails(refusal, "input is too long")(call)
            return
        rows: list[Any] = [vector_of(text, dimension) for text in texts]
        if coded:
            rows = [base64.b64encode(np.array(r, "<f4").tobytes()).decode() for r in rows]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        call.answer_json({"data": data[::-1]})  # no order is promised

    return step


class Waits:
    """What was to be waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


Opening = Callable[..., EndpointEmbedder]


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def opening(waits: Waits) -> Opening:
    def make(server: ModelServer, model: str = "tiny", **options: Any) -> EndpointEmbedder:
        settings = LlmSettings(url=server.url, timeout_s=options.pop("timeout_s", AMPLE_S))
        name = f"openai:{model}"
        return EndpointEmbedder(ModelEndpoint(settings), model, name=name, wait=waits, **options)

    return make


def unit(text: str) -> Any:
    vector = np.array(vector_of(text), np.float32)
    return vector / np.linalg.norm(vector)


def test_the_dimension_is_asked_for_once(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        embedder = opening(server)
        assert embedder.spec == embedder.spec
        assert (embedder.spec.name, embedder.spec.dimension) == ("openai:tiny", DIMENSION)
        assert len(server.requests) == 1
        assert opening(server, dimension=DIMENSION).spec == embedder.spec
    assert len(server.requests) == 1


def test_vectors_are_unit_rows_in_the_order_of_the_texts(opening: Opening) -> None:
    texts = [f"text number {number}" for number in range(70)]
    with ModelServer(embeds()) as server:
        vectors = opening(server, dimension=DIMENSION).embed_passages(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert [len(request.body["input"]) for request in server.requests] == [32, 32, 6]
    assert {request.path for request in server.requests} == {"/v1/embeddings"}
    assert {request.body["model"] for request in server.requests} == {"tiny"}


def test_no_texts_are_no_request(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        assert opening(server, dimension=DIMENSION).embed_passages([]).shape == (0, DIMENSION)
    assert server.requests == []


def test_the_family_s_prefixes_are_put_in_front(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        embedder = opening(server, "nomic-embed-text:latest", dimension=DIMENSION)
        embedder.embed_query("red boat")
        embedder.embed_passages(["a page"])
    assert [request.body["input"] for request in server.requests] == [
        ["search_query: red boat"],
        ["search_document: a page"],
    ]
    assert embedder.spec.query_prefix == "search_query: "
    assert "search_query: " in embedder.spec.fingerprint


def test_vectors_may_come_as_base64(opening: Opening) -> None:
    with ModelServer(embeds(coded=True)) as server:
        vector = opening(server).embed_query("red boat")
    assert np.allclose(vector, unit("red boat"), atol=1e-6)


@pytest.mark.parametrize("refusal", [400, 413, 422, 500])
def test_what_is_too_long_is_embedded_in_parts(opening: Opening, refusal: int) -> None:
    long = "red boat " * 400
    with ModelServer(embeds(longest=900, refusal=refusal)) as server:
        vectors = opening(server, dimension=DIMENSION).embed_passages(["short", long, "other"])
    assert np.allclose(vectors, [unit("short"), unit("red boat"), unit("other")], atol=0.01)
    sent = [len(text) for request in server.requests for text in request.body["input"]]
    assert sum(sent) < 10 * len(long)


def test_many_long_texts_are_sent_in_smaller_requests(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        opening(server, dimension=DIMENSION).embed_passages(["word " * 2000] * 12)
    sizes = [sum(map(len, request.body["input"])) for request in server.requests]
    assert len(sizes) > 1
    assert max(sizes) < 2 * embedding_endpoint.BATCH_CHARS


def test_a_text_without_end_is_never_sent_whole(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        opening(server, dimension=DIMENSION).embed_passages(["x" * 100_000])
        opening(server, dimension=DIMENSION).embed_query("x" * 100_000)
    longest = max(len(text) for request in server.requests for text in request.body["input"])
    assert longest <= embedding_endpoint.LONGEST_CHARS


def test_passages_are_tried_again_with_growing_pauses(opening: Opening, waits: Waits) -> None:
    with ModelServer(fails(503), resets(), fails(429, retry_after="5"), embeds()) as server:
        vectors = opening(server, dimension=DIMENSION).embed_passages(["red boat"])
    assert np.allclose(vectors, [unit("red boat")], atol=1e-6)
    assert waits.seconds == [1.0, 3.0, 9.0]


def test_a_server_may_ask_for_a_longer_pause_but_not_for_any(
    opening: Opening, waits: Waits
) -> None:
    with ModelServer(fails(429, retry_after="7"), embeds()) as server:
        opening(server, dimension=DIMENSION).embed_passages(["red"])
    assert waits.seconds == [7.0]
    with (
        ModelServer(fails(429, retry_after="3600")) as server,
        pytest.raises(TransientInferenceError),
    ):
        opening(server, dimension=DIMENSION).embed_passages(["red"])
    assert len(server.requests) == 1


def test_in_the_end_it_gives_up(opening: Opening, waits: Waits) -> None:
    with ModelServer(fails(503)) as server, pytest.raises(TransientInferenceError):
        opening(server, dimension=DIMENSION).embed_passages(["red"])
    assert len(server.requests) == 4


def test_what_will_not_change_is_not_tried_again(opening: Opening, waits: Waits) -> None:
    for status in (401, 404):
        with ModelServer(fails(status)) as server, pytest.raises(InferenceError) as caught:
            opening(server, dimension=DIMENSION).embed_passages(["red " * 400])
        assert caught.value.hint
        assert (len(server.requests), waits.seconds) == (1, [])


def test_a_question_is_asked_once(opening: Opening, waits: Waits) -> None:
    with ModelServer(fails(503)) as server, pytest.raises(TransientInferenceError):
        opening(server, dimension=DIMENSION).embed_query("red")
    assert (len(server.requests), waits.seconds) == (1, [])


def test_another_dimension_than_recorded_is_another_model(opening: Opening) -> None:
    with ModelServer(embeds(8)) as server:
        embedder = opening(server, dimension=DIMENSION)
        with pytest.raises(ModelMismatchError, match="8 numbers now, and had 16"):
            embedder.embed_passages(["red"])
        with pytest.raises(ModelMismatchError):
            embedder.embed_query("red")


def rows(*embeddings: object) -> Step:
    data = [{"index": i, "embedding": each} for i, each in enumerate(embeddings)]
    return lambda call: call.answer_json({"data": data})


@pytest.mark.parametrize(
    "step",
    [
        sends(b"null"),
        sends(b"<html>", "text/html"),
        sends(b'{"data": 5}'),
        sends(b'{"data": [5]}'),
        rows(),
        rows([]),
        rows("no base64!"),
        rows(None),
        rows([1.0, "two"]),
        rows([[1.0], [2.0]]),
        rows([1.0, [2.0]]),
        rows([True] * DIMENSION),
        rows([float("nan")] * DIMENSION),
        rows([1e300] * DIMENSION),
        rows([10**400] * DIMENSION),
        rows([0.0] * DIMENSION),
        lambda call: call.answer_json({"data": [{"index": 7, "embedding": [1.0] * DIMENSION}]}),
    ],
)
def test_what_is_no_vector_is_refused(opening: Opening, step: Step) -> None:
    with ModelServer(step) as server, pytest.raises(InferenceError):
        opening(server, dimension=DIMENSION).embed_query("red")


def test_a_silent_server_is_left(opening: Opening) -> None:
    with ModelServer(hangs()) as server, pytest.raises(TransientInferenceError, match="within"):
        opening(server, dimension=DIMENSION, timeout_s=0.02).embed_passages(["red"])


def test_any_text_can_be_sent(opening: Opening) -> None:
    with ModelServer(embeds()) as server:
        vectors = opening(server, dimension=DIMENSION).embed_passages(["", "\0", "\ud800 x", "数"])
    assert np.isfinite(vectors).all()


# --- as the model of a knowledge base -------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "boat.md").write_text("# Boat\n\nA red boat in the harbour.\n", encoding="utf-8")
    (folder / "town.md").write_text("# Town\n\nStreets and houses.\n", encoding="utf-8")
    return folder


def opened(notes: Path, server: ModelServer, **settings: Any) -> KnowledgeBase:
    backends = BackendSettings(embed_url=server.url, **({"budget_s": AMPLE_S} | settings))
    return KnowledgeBase.open(
        notes.parent / "kb.sqlite", Settings(model="openai:tiny", backends=backends), create=True
    )


@pytest.fixture
def embedded(notes: Path) -> Iterator[Path]:
    with ModelServer(embeds()) as server, opened(notes, server) as kb:
        kb.add_collection(notes)
        kb.index()
        report = kb.embed()
        assert (report.embedded, report.remaining, report.model) == (2, 0, "openai:tiny")
        yield notes


def test_a_server_s_vectors_answer_questions(embedded: Path) -> None:
    with ModelServer(embeds()) as server, opened(embedded, server) as kb:
        assert kb.status().model == "openai:tiny"
        assert kb.vsearch("red boat", min_score=0).hits[0].path == "boat.md"
        reply = kb.query("red boat")
        assert reply.degraded is None
        assert kb.embedding_model().dimension == DIMENSION
    # The dimension is recorded, so nothing but the question is sent; and that only once.
    assert [request.body["input"] for request in server.requests] == [["red boat"]]


@pytest.mark.parametrize("step", [fails(500), hangs(), sends(b"null"), embeds(8)])
def test_a_broken_server_leaves_full_text(embedded: Path, step: Step) -> None:
    with ModelServer(step) as server, opened(embedded, server, budget_s=0.1) as kb:
        reply = kb.query("red boat")
        assert [hit.path for hit in reply.hits] == ["boat.md"]
        assert reply.degraded is not None
        assert reply.degraded.startswith("Answered from full text alone")


@pytest.mark.parametrize("step", [embeds(8), sends(b"null")])
def test_no_vector_is_given_up_for_a_server_that_makes_none(embedded: Path, step: Step) -> None:
    with ModelServer(step) as server, opened(embedded, server) as kb:
        with pytest.raises(InferenceError):
            kb.embed(force=True)
        assert kb.status().chunks_embedded == 2


def test_a_server_that_keeps_failing_is_not_asked_by_each_query(embedded: Path) -> None:
    with ModelServer(fails(500)) as server, opened(embedded, server) as kb:
        for number in range(5):
            assert kb.query(f"red boat {number}").degraded
    assert len(server.requests) == 2


@pytest.mark.parametrize("proxy", ["http://me:s3cr/etpw@127.0.0.1:1", "http://me:s3cr[etpw@x:1"])
def test_a_proxy_that_is_none_is_an_error_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    endpoint = ModelEndpoint(LlmSettings(url="https://model.invalid/v1"))
    with pytest.raises(ConfigError, match="proxy") as problem:
        endpoint.ask("/chat/completions", {}, timeout_s=AMPLE_S)
    assert "s3cr" not in f"{problem.value} {problem.value.hint}"
