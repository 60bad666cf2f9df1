"""What the two rankings are made of: BM25 anew, nearness, evidence, relevance."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from qmd.search import rerank
from qmd.search.meaning.nearness import centre, mean_nearness
from qmd.search.meaning.retrieval import nearest_documents, require_index
from qmd.search.present import relevance
from qmd.search.present.relevance import Evidence
from qmd.search.words import bm25, expressions
from qmd.store.full_text import BM25_K1
from tests.support.corpus import Corpus

FILES = {
    "one.md": "# One\n\nred boat and a red sea\n",
    "two.md": "# Two\n\nthe boat is blue, and long is the text in which it is called so\n",
    "three.md": "# Three\n\nred red red red\n",
    "four.md": "# Four\n\nthe boat the boat the boat\n",
    "five.md": "# Five\n\nthe sea\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("ranking"))
    made.fill(FILES)
    yield made
    made.kb.close()


@pytest.mark.parametrize("word", ["red", "boat", "sea", "blue", "the"])
def test_the_frequencies_recovered_from_fts5_make_its_own_bm25(corpus: Corpus, word: str) -> None:
    with corpus.store.reading() as reader:
        phrase = expressions.phrase(word)
        assert phrase is not None
        rows = dict(reader.full_text.search(phrase, reader.all_documents, None))
        held, total = len(rows), reader.documents.count()
        found = reader.full_text.frequencies(phrase, [*rows, 999], held, total)
        idf = max(log((total - held + 0.5) / (held + 0.5)), 1e-6)
        assert found.keys() == rows.keys()
        for number, frequency in found.items():
            score = idf * (BM25_K1 + 1) * frequency / (frequency + 1)
            assert score == pytest.approx(rows[number])


def test_a_word_that_most_documents_hold_still_counts(corpus: Corpus) -> None:
    hits = corpus.kb.search("boat sea wind", explain=True).hits
    scores = {word["word"]: word["score"] for hit in hits for word in (hit.explain or {})["words"]}
    assert scores["boat"] > 0.1  # FTS5 itself gives 0.000001
    assert 0 < bm25.idf(5, 5) < bm25.idf(3, 5) < bm25.idf(1, 5) < bm25.idf(0, 5)


def test_a_stop_word_alone_finds_no_page_for_a_question(corpus: Corpus) -> None:
    assert corpus.kb.search("what is the pneumonia").hits == ()
    assert {hit.path for hit in corpus.kb.search("the").hits} == {"two.md", "four.md", "five.md"}


def test_chinese_chatter_counts_less_than_what_is_asked_about(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"a.md": "怎么 怎么 怎么 样\n", "b.md": "备份 数据\n", "c.md": "其他\n"})
    assert [hit.path for hit in corpus.kb.search("怎么备份").hits] == ["b.md", "a.md"]
    corpus.kb.close()


def test_what_all_texts_share_is_taken_out_of_a_question_on_the_scale_of_cosines(
    tmp_path: Path,
) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({f"{n}.md": f"# {n}\n\nall say this, and {n * 7919} too\n" for n in range(150)})
    corpus.kb.embed()
    with corpus.store.reading() as reader:
        model = require_index(reader, None)
        vector = corpus.embedder.embed_query("what all say, and 55433")
        question = centre(reader, model, vector)
        hits = nearest_documents(reader, model, question, reader.all_documents, None)
        assert len(hits) == 150
        shared = [hit.cosine - hit.nearness for hit in hits]
        assert max(shared) > 0.001 > -0.001 > min(shared)
        assert sum(shared) / len(shared) == pytest.approx(0, abs=0.01)
        assert hits[0].nearness == max(hit.nearness for hit in hits)
        some = [hit.document_id for hit in hits[:5]]
        whole = mean_nearness(reader, model, question, some)
        # These documents have one chunk each.
        assert whole == pytest.approx({hit.document_id: hit.nearness for hit in hits[:5]}, abs=1e-5)
    corpus.kb.close()


def test_evidence_puts_what_is_far_ahead_in_one_list_before_the_middling() -> None:
    words = {number: 10.0 - 0.01 * number for number in range(50)} | {90: 30.0}
    nearest = {number: 0.85 - 0.0001 * number for number in range(50)}
    ranked = rerank.rerank_by_scores([0, 1, 49, 90], words, nearest, {}, 1000)
    assert max(ranked, key=lambda number: ranked[number].score) == 90
    assert ranked[90].score == 1.0
    assert min(hit.score for hit in ranked.values()) == 0.0


def test_a_page_whose_vectors_are_still_to_be_made_is_not_taken_for_a_far_one() -> None:
    words = {number: 10.0 - number for number in range(8)}
    nearest = {number: 0.80 + 0.005 * number for number in range(1, 8)}
    ranked = rerank.rerank_by_scores(list(range(8)), words, nearest, nearest, 8)
    best = ranked[0].parts
    assert best is not None
    assert (best["nearest"], best["whole"]) == (0.0, 0.0)
    far = rerank.rerank_by_scores(list(range(8)), words, nearest | {0: 0.5}, nearest | {0: 0.5}, 8)
    assert ranked[0].score > far[0].score


def test_one_document_with_one_word_is_not_ten_deviations_away() -> None:
    ranked = rerank.rerank_by_scores([1, 2], {1: 3.0}, {1: 0.8, 2: 0.9}, {1: 0.8, 2: 0.9}, 1000)
    parts = ranked[1].parts
    assert parts is not None
    assert parts["words"] == rerank.WORDS * rerank.MOST


def test_without_vectors_there_is_nothing_to_rerank_by() -> None:
    assert rerank.rerank_by_scores([1, 2], {1: 3.0, 2: 1.0}, {}, {}, 10) == {}


def test_equal_evidence_leaves_the_fused_order() -> None:
    ranked = rerank.rerank_by_scores([1, 2], {}, {1: 0.9, 2: 0.9}, {1: 0.9, 2: 0.9}, 10)
    assert [hit.score for hit in ranked.values()] == [1.0, 1.0]


def test_relevance_rises_with_coverage_and_with_nearness() -> None:
    shares = [number / 10 for number in range(11)]
    alone = [relevance.estimate(Evidence(share, None)) for share in shares]
    assert alone == sorted(alone)
    for share in shares:
        near = [relevance.estimate(Evidence(share, level)) for level in shares]
        assert near == sorted(near)
        held = [relevance.estimate(Evidence(each, share)) for each in shares]
        assert held == sorted(held)
    assert 0 < relevance.estimate(Evidence(None, -99.0)) < 0.05
    assert 0.95 < relevance.estimate(Evidence(1.0, 99.0)) < 1


def test_the_best_hit_of_a_hopeless_question_does_not_look_relevant(corpus: Corpus) -> None:
    (best, *_) = corpus.kb.search("why does my sea monkey get vaccinated against rabies").hits
    assert best.relevance < 0.4
    assert corpus.kb.search("red boat").hits[0].relevance > 0.8
