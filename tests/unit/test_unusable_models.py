"""Models that return what is no vector, no score and no expansion: said so, nothing stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import InferenceError
from qmd.inference.protocols import Expansion
from qmd.models.guard import checked_expansions
from qmd.store.sqlite.library import connect
from tests.support.embedder import HashEmbedder
from tests.support.model_server import ModelServer
from tests.support.tiny_onnx import write_embedder

Spoil = Callable[[Any], Any]


class Spoiled(HashEmbedder):
    """`HashEmbedder`, whose vectors go through ``spoil`` once it is set."""

    def __init__(self, spoil: Spoil | None = None) -> None:
        super().__init__()
        self.spoil = spoil

    def embed_passages(self, texts: Sequence[str]) -> Any:
        found = super().embed_passages(texts)
        return found if self.spoil is None else self.spoil(found)

    def embed_query(self, text: str) -> Any:
        found = super().embed_query(text)
        return found if self.spoil is None else self.spoil(found[np.newaxis])[0]


def last_set_to(value: float) -> Spoil:
    def spoil(vectors: Any) -> Any:
        vectors[-1, -1] = value
        return vectors

    return spoil


def raises(vectors: Any) -> Any:
    raise RuntimeError("out of memory")


SPOILS: dict[str, Spoil] = {
    "nan": last_set_to(np.nan),
    "infinite": last_set_to(np.inf),
    "zero": lambda vectors: vectors * 0,
    "too short": lambda vectors: vectors[:, :-1],
    "too long": lambda vectors: np.hstack([vectors, vectors]),
    "strings": lambda vectors: vectors.astype(str),
    "objects": lambda vectors: [None for _ in vectors],
    "ragged": lambda vectors: [list(range(3 + number % 2)) for number in range(len(vectors) + 1)],
    "one number each": lambda vectors: [[1.0] for _ in vectors],
    "complex": lambda vectors: vectors.astype(complex),
    "raises": raises,
}
FOR_LISTS_ONLY: dict[str, Spoil] = {
    "one too few": lambda vectors: vectors[:-1],
    "one too many": lambda vectors: np.vstack([vectors, vectors[:1]]),
    "nothing": lambda vectors: None,
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for name in ("boat", "ship", "raft"):
        (root / f"{name}.md").write_text(f"# {name.title()}\n\nA red {name} sails.\n")
    return root


@pytest.fixture
def database(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(notes)
        kb.index()
    return path


def stored(database: Path) -> int:
    connection = connect(database, read_only=True)
    (count,) = connection.execute("SELECT count(*) FROM z_embeddings").fetchone()
    connection.close()
    return int(count)


def assert_told(error: InferenceError) -> None:
    assert "test-hash" in str(error)
    assert "qmd models use" in (error.hint or "")


@pytest.mark.parametrize("kind", [*SPOILS, *FOR_LISTS_ONLY])
def test_nothing_is_stored_of_a_batch_with_an_unusable_vector(database: Path, kind: str) -> None:
    spoil = (SPOILS | FOR_LISTS_ONLY)[kind]
    with KnowledgeBase.open(database, Settings(embedder=Spoiled(spoil))) as kb:
        for force in (False, True):
            with pytest.raises(InferenceError) as caught:
                kb.embed(force=force)
            assert_told(caught.value)
        with pytest.raises(InferenceError) as caught:
            kb.embed_texts(["a", "b"])
        assert_told(caught.value)
        assert kb.status().chunks_embedded == 0
    assert stored(database) == 0


@pytest.mark.parametrize("kind", SPOILS)
def test_a_question_without_a_vector_is_answered_from_words(database: Path, kind: str) -> None:
    embedder = Spoiled()
    with KnowledgeBase.open(database, Settings(embedder=embedder)) as kb:
        kb.embed()
        embedder.spoil = SPOILS[kind]
        reply = kb.query("boat")
        assert [hit.path for hit in reply.hits] == ["boat.md"]
        assert (reply.degraded or "").startswith("Answered from full text alone")
        assert "test-hash" in (reply.degraded or "")
        for ask in (
            lambda: kb.vsearch("boat"),
            lambda: kb.embed_texts(["boat"], kind="query"),
            lambda: kb.embed(force=True),
        ):
            with pytest.raises(InferenceError) as caught:
                ask()
            assert_told(caught.value)
        embedder.spoil = None
        assert kb.vsearch("boat").hits[0].path == "boat.md"  # no vector was given up
    assert stored(database) == 3


def test_vectors_of_another_length_than_one_are_scaled(database: Path) -> None:
    with KnowledgeBase.open(database, Settings(embedder=Spoiled(lambda found: found * 7))) as kb:
        kb.embed()
        vectors = kb.embed_texts(["a", "b"])
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
        assert all(hit.score <= 1 for hit in kb.vsearch("A red boat sails.", min_score=0).hits)


def test_numbers_too_large_for_their_norm_are_refused(database: Path) -> None:
    with (
        KnowledgeBase.open(database, Settings(embedder=Spoiled(lambda found: found * 1e38))) as kb,
        pytest.raises(InferenceError, match="not finite"),
    ):
        kb.embed()


# --- a folder of one's own, and a server ------------------------------------------------


def spoiled_folder(folder: Path, value: float) -> str:
    """A model whose vectors are made of this number alone."""
    import onnx
    from onnx import numpy_helper

    write_embedder(folder)
    model = onnx.load(folder / "model.onnx")
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            spoiled = np.full_like(array, value)
            tensor.CopyFrom(numpy_helper.from_array(spoiled, tensor.name))
    onnx.save(model, folder / "model.onnx")
    return str(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_folder_that_gives_no_usable_vector_is_told(
    database: Path, tmp_path: Path, value: float
) -> None:
    folder = spoiled_folder(tmp_path / "model", value)
    with KnowledgeBase.open(database, Settings(model=folder)) as kb:
        with pytest.raises(InferenceError, match=r"no usable vector|Cannot embed") as caught:
            kb.embed()
        assert folder in str(caught.value)
        assert caught.value.hint
        assert kb.query("boat").hits
    assert stored(database) == 0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "0.0", '"1.0"', "null", "[1]"])
def test_a_server_that_gives_no_usable_vector_is_told(database: Path, number: str) -> None:
    from qmd.settings import BackendSettings

    def answer(call: Any) -> None:
        count = len(call.request.body["input"])
        good = call.request.body["input"] == ["dimension"]
        row = "[1.0, 2.0]" if good else f"[{number}, {number}]"
        rows = ", ".join(f'{{"index": {place}, "embedding": {row}}}' for place in range(count))
        call.answer(200, "application/json", f'{{"data": [{rows}]}}'.encode())

    with ModelServer(answer) as server:
        settings = BackendSettings(embed_url=server.url, budget_s=30)
        with KnowledgeBase.open(database, Settings(model="openai:tiny", backends=settings)) as kb:
            with pytest.raises(InferenceError, match="openai:tiny") as caught:
                kb.embed()
            assert caught.value.hint
    assert stored(database) == 0


# --- rerankers and expanders ------------------------------------------------------------


class Judge:
    name = "judge"

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Any:
        return self.scores


@pytest.fixture
def embedded(database: Path) -> Iterator[Path]:
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        kb.embed()
    return database


@pytest.mark.parametrize(
    "scores",
    [[float("nan")] * 3, [float("inf")] * 3, [7, 8, 9], [0.1], [0.1] * 9, ["a"] * 3, None, 5],
)
def test_scores_that_are_none_take_away_the_reranking_alone(embedded: Path, scores: Any) -> None:
    with KnowledgeBase.open(embedded, Settings(embedder=HashEmbedder())) as kb:
        plain = kb.query("red boat")
    with KnowledgeBase.open(
        embedded, Settings(embedder=HashEmbedder(), reranker=Judge(scores))
    ) as kb:
        reply = kb.query("red boat")
    assert (reply.degraded or "").startswith("Not reranked: ")
    assert reply.hits == plain.hits


class Talker:
    def __init__(self, found: Any) -> None:
        self.found = found

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Any:
        return self.found


@pytest.mark.parametrize(
    "found",
    [None, 5, ["ship"], [None], [Expansion("vec", None)], [Expansion("sql", "x")]],  # type: ignore[arg-type]
)
def test_expansions_that_are_none_take_away_the_expansion_alone(embedded: Path, found: Any) -> None:
    with KnowledgeBase.open(
        embedded, Settings(embedder=HashEmbedder(), expander=Talker(found))
    ) as kb:
        reply = kb.query("red boat")
        assert (reply.degraded or "").startswith("Not expanded: ")
        assert reply.hits[0].path == "boat.md"
        assert kb.vsearch("red boat").hits[0].path == "boat.md"


def test_blank_expansions_and_more_than_asked_for_are_left_out() -> None:
    many = [Expansion("lex", " "), *(Expansion("lex", f"ship{number}") for number in range(9))]
    assert [each.text for each in checked_expansions(many, 2)] == ["ship0", "ship1"]
