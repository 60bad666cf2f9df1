"""Late interaction: the tokens of a question against those of chunks, and as a part of `query`."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import InferenceError
from qmd.inference.remote import RemoteEmbedder
from qmd.inference.token_codes import (
    CODE_BYTES,
    MARK,
    MOST_TOKENS,
    TokenProjection,
    encode,
    english_vectors,
    fit_projection,
    is_sound,
    pack,
    with_english,
    without_english,
)
from qmd.ingest.embedding import embed as run_embed
from qmd.search.evidence import COMPUTED, TOKENS_DEPTH, WEIGHTS
from qmd.search.meaning.nearness import codes_of, english_nearness, late_interaction
from qmd.search.question import SearchModels
from qmd.search.searches import search_by_both
from qmd.store import Writer
from qmd.store.sql.models import StoredModel, StoredProjection
from qmd.values import Hit, Part, SearchRequest
from tests.support.corpus import Corpus
from tests.support.embedder import BesideEnglish, HashEmbedder, HashTokenEmbedder

WORDS = ["red", "boat", "sea", "island", "city", "wind", "harbour", "sail", "备份", "数据库"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
EMBEDDER = HashTokenEmbedder()


@functools.cache
def projection() -> TokenProjection:
    return fit_projection(
        [EMBEDDER.token_states(" ".join(WORDS[n:] + WORDS[:n])) for n in range(20)]
    )


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=6, unique=True))
def test_a_text_scores_the_same_whatever_others_are_compared(
    question: str, texts: list[str]
) -> None:
    asked = EMBEDDER.token_states(question)
    codes = {
        chunk_id: encode(EMBEDDER.token_states(text), projection())
        for chunk_id, text in enumerate(texts)
    }
    together = late_interaction(asked, projection(), codes)
    assert together.keys() == codes.keys()
    for chunk_id, score in together.items():
        assert -1 <= score <= 1
        alone = late_interaction(asked, projection(), {chunk_id: codes[chunk_id]})
        assert alone == {chunk_id: score}


@given(TEXTS, TEXTS)
def test_more_words_of_the_question_bring_a_text_nearer(question: str, text: str) -> None:
    asked = EMBEDDER.token_states(question)
    codes = {
        1: encode(EMBEDDER.token_states(text), projection()),
        2: encode(EMBEDDER.token_states(f"{text} {question}"), projection()),
    }
    scores = late_interaction(asked, projection(), codes)
    assert scores[2] >= scores[1]


def test_a_text_without_tokens_is_left_out() -> None:
    asked = EMBEDDER.token_states("red")
    codes = {1: b"", 2: encode(EMBEDDER.token_states("red"), projection()), 3: b""}
    assert late_interaction(asked, projection(), codes).keys() == {2}
    assert late_interaction(asked, projection(), {1: b""}) == {}


# --- with a vector of English -------------------------------------------------------------

NUMBERS = st.lists(st.floats(-1, 1, width=32), min_size=384, max_size=384).filter(
    lambda numbers: max(map(abs, numbers)) > 0.01
)


@given(NUMBERS, NUMBERS, st.integers(0, MOST_TOKENS))
def test_codes_with_a_vector_of_english_take_no_more_room_than_any(
    numbers: list[float], others: list[float], tokens: int
) -> None:
    vector, other = (np.array(each, np.float32) for each in (numbers, others))
    vector, other = vector / np.linalg.norm(vector), other / np.linalg.norm(other)
    plain = bytes(range(CODE_BYTES)) * tokens
    codes = with_english(plain, vector)
    assert is_sound(codes) and len(codes) <= MOST_TOKENS * CODE_BYTES
    assert plain.endswith(without_english(codes))  # the rarest tokens stay
    assert english_vectors([codes])[0] @ vector > 0.999
    assert without_english(plain) == plain
    replaced = with_english(codes, other)
    assert without_english(replaced) == without_english(codes)
    assert english_vectors([replaced])[0] @ other > 0.999


@given(TEXTS, TEXTS)
def test_tokens_are_compared_as_without_it(question: str, text: str) -> None:
    asked = EMBEDDER.token_states(question)
    plain = encode(EMBEDDER.token_states(text), projection())
    vector = EMBEDDER.embed_query(text)
    both = {1: plain, 2: with_english(plain, vector)}
    scores = late_interaction(asked, projection(), both)
    assert scores[1] == scores[2]
    assert english_nearness(vector, both) == pytest.approx({2: 1}, abs=0.001)


def test_half_a_vector_of_english_counts_as_damage() -> None:
    assert not is_sound(MARK + bytes(CODE_BYTES))


ENGLISH, CHINESE = "The boat and the wind, and this island.\n", "数据库的备份和恢复。\n"


def english_texts(corpus: Corpus) -> set[str]:
    with corpus.store.reading() as reader:
        rows = reader.connection.execute(
            "SELECT d.path, t.codes FROM chunks k JOIN documents d ON d.id = k.document_id"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = k.model_id"
            " JOIN z_token_states t ON t.embedding_id = e.id"
        ).fetchall()
    return {path for path, codes in rows if codes.startswith(MARK)}


def test_english_texts_get_their_vector_once(tmp_path: Path) -> None:
    embedder = BesideEnglish()
    others = {f"{number}.md": f"{ENGLISH}{number}\n" for number in range(2, 40)}
    corpus = Corpus(tmp_path)
    corpus.fill({"1.md": ENGLISH, "文.md": CHINESE} | others)

    def embed(embedder: HashTokenEmbedder, *, force: bool = False) -> None:
        run_embed(corpus.store, embedder, collection_ids=[1], force=force)

    embed(HashTokenEmbedder())  # of an earlier version
    assert english_texts(corpus) == set()
    embed(embedder)
    assert english_texts(corpus) == {"1.md", *others}
    assert (embedder.passages, embedder.english.calls) == (0, 39)
    embed(embedder)
    assert embedder.english.calls == 39
    corpus.fill({"new.md": f"{ENGLISH}It is new.\n", "又.md": f"{CHINESE}\n又。\n"})
    embed(embedder)
    assert english_texts(corpus) == {"new.md"}
    assert embedder.english.calls == 40
    embed(embedder, force=True)
    assert english_texts(corpus) == {"new.md"}
    corpus.kb.close()


def test_a_text_without_token_states_is_not_passed_over(tmp_path: Path) -> None:
    embedder = BesideEnglish()
    ours = {f"{number}.md": f"{ENGLISH}{number}\n" for number in range(3)}
    corpus = Corpus(tmp_path)
    corpus.add_collection("others")
    corpus.fill({"others::first.md": f"{ENGLISH}One.\n"} | ours)
    run_embed(corpus.store, HashEmbedder())  # of an earlier version
    corpus.store.write(begin)
    run_embed(corpus.store, embedder, collection_ids=[corpus.number])
    run_embed(corpus.store, embedder)
    assert english_texts(corpus) == {"first.md", *ours}
    assert embedder.english.calls == 4
    corpus.kb.close()


def test_none_after_a_text_that_waits_is_taken_so_none_is_passed_over(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"1.md": ENGLISH, "2.md": f"{ENGLISH}Two.\n"})
    run_embed(corpus.store, HashTokenEmbedder())

    def ids() -> list[int]:
        with corpus.store.reading() as reader:
            model = reader.models.active()
            assert model is not None
            return [chunk.id for chunk in reader.tokens.after(model, 0, 10)]

    first, second = ids()
    for waiting, left in ((first, []), (second, [first])):
        corpus.store.write(
            lambda writer, waiting=waiting: writer.connection.execute(  # type: ignore[misc]
                "UPDATE chunks SET model_id = CASE WHEN id = ? THEN NULL ELSE 1 END", [waiting]
            )
        )
        assert ids() == left
    corpus.kb.close()


# --- in a knowledge base ------------------------------------------------------------------

FILES = {
    f"{number:02}.md": f"# Note {number}\n\n"
    + " ".join(WORDS[(number * step) % 10] for step in range(1, 9))
    + "\n"
    for number in range(60)
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """Sixty notes; each has the token states of its text, but those whose number ends in 7."""
    filled = Corpus(tmp_path_factory.mktemp("late"))
    filled.fill(FILES)
    filled.kb.embed()
    filled.store.write(put_codes)
    yield filled
    filled.kb.close()


def begin(writer: Writer) -> StoredModel:
    """Record the projection."""
    model = writer.models.active()
    assert model is not None
    form = StoredProjection(projection().recipe, CODE_BYTES, pack(projection()))
    writer.tokens.begin(model, form)
    return model


def put_codes(writer: Writer) -> None:
    model = begin(writer)
    rows = writer.connection.execute(
        "SELECT k.hash, d.text FROM chunks k JOIN documents d ON d.id = k.document_id"
        " WHERE d.path NOT LIKE '%7.md'"
    ).fetchall()
    codes = {digest: encode(EMBEDDER.token_states(text), projection()) for digest, text in rows}
    writer.tokens.put(model, codes)


def ask(corpus: Corpus, query: str, limit: int, without: tuple[Part, ...] = ()) -> tuple[Hit, ...]:
    """The hits of `query` with a model that gives token states of questions only."""
    embedder = HashTokenEmbedder()
    embedder.is_loaded = False
    request = SearchRequest(query, limit=limit, explain=True, without=without)
    with corpus.store.reading() as reader:
        return search_by_both(reader, request, SearchModels(lambda: embedder)).hits


def parts_of(hit: Hit) -> list[str]:
    parts: list[dict[str, Any]] = (hit.explain or {})["parts"]  # type: ignore[assignment]
    return [part["part"] for part in parts]


def tokens_part(hit: Hit) -> dict[str, Any]:
    parts: list[dict[str, Any]] = (hit.explain or {})["parts"]  # type: ignore[assignment]
    (part,) = [part for part in parts if part["part"] == "tokens"]
    return part


def test_the_best_documents_are_compared_by_their_tokens(corpus: Corpus) -> None:
    hits = ask(corpus, "red boat", 60)
    assert len(hits) == 60
    compared = [tokens_part(hit) for hit in hits]
    assert all(part["weight"] == WEIGHTS["tokens"] for part in compared)
    assert any(part["contribution"] > 0 for part in compared)
    # Nobody behind the compared documents overtakes one of them.
    assert all(part["contribution"] == 0 for part in compared[TOKENS_DEPTH:])


def test_a_document_without_token_states_counts_as_average(corpus: Corpus) -> None:
    hits = ask(corpus, "red boat", TOKENS_DEPTH)
    without = [tokens_part(hit) for hit in hits if hit.path.endswith("7.md")]
    assert without
    assert all(part["value"] == part["mean"] for part in without)


def test_tokens_can_be_left_out(corpus: Corpus) -> None:
    with_all, without = ask(corpus, "red boat", 1), ask(corpus, "red boat", 1, without=("tokens",))
    assert set(parts_of(with_all[0])) == set(WEIGHTS) - {"english"}
    assert set(parts_of(without[0])) == set(WEIGHTS) - {"tokens", "english"}


def test_the_order_does_not_depend_on_the_limit(corpus: Corpus) -> None:
    paths = [hit.path for hit in ask(corpus, "sail to the red island", 60)]
    for limit in (1, 5, 29, 31):
        assert [hit.path for hit in ask(corpus, "sail to the red island", limit)] == paths[:limit]


def test_a_model_without_token_states_goes_without(corpus: Corpus) -> None:
    hits = corpus.kb.query("red boat", explain=True).hits
    assert "tokens" not in parts_of(hits[0])


class Fails(HashTokenEmbedder):
    def embed_passages_with_tokens(self, texts: Sequence[str]) -> NoReturn:
        raise InferenceError("no memory")


def test_for_chunks_without_stored_states_the_model_is_run_a_few_times(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill(FILES)
    corpus.kb.embed()
    corpus.store.write(begin)
    embedder = HashTokenEmbedder()
    request = SearchRequest("red boat", explain=True)
    with corpus.store.reading() as reader:
        reply = search_by_both(reader, request, SearchModels(lambda: embedder))
        assert embedder.passages == COMPUTED
        assert all(tokens_part(hit)["mean"] > 0 for hit in reply.hits)

        embedder.is_loaded = False  # a server embeds the questions, for example
        reply = search_by_both(reader, request, SearchModels(lambda: embedder))
        assert embedder.passages == COMPUTED
        assert {tokens_part(hit)["mean"] for hit in reply.hits} == {0.0}
        assert reply.degraded is None

        reply = search_by_both(reader, request, SearchModels(Fails))
        assert reply.degraded == "Tokens not compared: no memory"
        assert len(reply.hits) == 10
    corpus.kb.close()


@pytest.mark.parametrize(("chunk_s", "runs"), [(0.0, 5), (0.05, 5), (0.3, 3), (0.6, 1), (2.0, 1)])
def test_a_slow_model_is_run_as_long_as_a_query_may_wait(
    tmp_path: Path, chunk_s: float, runs: int
) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill(FILES)
    corpus.kb.embed()
    corpus.store.write(begin)
    embedder = HashTokenEmbedder()
    with corpus.store.reading() as reader:
        model = reader.models.active()
        assert model is not None
        codes = codes_of(
            reader,
            model,
            [40, 3, 9, 30, 20, 10],
            embedder,
            5,
            clock=lambda: embedder.passages * chunk_s,
        )
    assert list(codes) == [40, 3, 9, 30, 20][:runs]  # the most important first
    corpus.kb.close()


@pytest.mark.parametrize("is_loaded", [True, False])
def test_so_it_is_where_a_running_server_may_embed_questions(
    tmp_path: Path, is_loaded: bool
) -> None:
    """Commands and servers open the model in this way; it is run only if it is in memory."""
    corpus = Corpus(tmp_path)
    corpus.fill(FILES)
    corpus.kb.embed()
    corpus.store.write(begin)
    local = HashTokenEmbedder()
    remote = RemoteEmbedder(
        local.spec, find=lambda: None, is_loaded=lambda: local.is_loaded, local=lambda: local
    )
    local.is_loaded = is_loaded
    with corpus.store.reading() as reader:
        search_by_both(reader, SearchRequest("red boat"), SearchModels(lambda: remote))
    assert local.passages == (COMPUTED if is_loaded else 0)
    corpus.kb.close()


ASK = """
import sys
from pathlib import Path
from qmd import KnowledgeBase
from qmd.search.meaning import nearness
from qmd.search.question import SearchModels
from qmd.search.searches import search_by_both
from qmd.values import SearchRequest
from tests.support.embedder import HashTokenEmbedder

nearness.COMPUTED_S = 60  # on a busy machine, too, all that is missing is computed
with KnowledgeBase.open(Path(sys.argv[1]), read_only=True) as kb, kb._store.reading() as reader:
    for query in ("red boat", "sail to the red island", "备份 sea"):
        request = SearchRequest(query, limit=60, explain=True)
        print(repr(search_by_both(reader, request, SearchModels(HashTokenEmbedder))))
"""


def test_every_process_gives_the_same_reply(corpus: Corpus) -> None:
    replies = {
        subprocess.run(
            [sys.executable, "-c", ASK, corpus.path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(replies) == 1
    assert "tokens" in replies.pop()
