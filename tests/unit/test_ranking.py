"""What the two rankings are made of: BM25 anew, nearness, judge."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log
from pathlib import Path
from typing import get_args

import pytest

from qmd.search import judge, words
from qmd.search import words as weights
from qmd.search.judge import Grounds, Order
from qmd.search.meaning.nearness import bare, centre, vector_matrix, whole_documents
from qmd.search.meaning.retrieval import nearest_documents, require_index
from qmd.search.query import Script, parse_string
from qmd.search.words import POOL, QueryWords
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
        phrase = words.phrase(word)
        assert phrase is not None
        rows = dict(reader.full_text.search(phrase, reader.all_documents, None))
        held, total = len(rows), reader.documents.count()
        found = reader.full_text.frequencies(phrase, [*rows, 999], held, total)
        idf = max(log((total - held + 0.5) / (held + 0.5)), 1e-6)
        assert found.keys() == rows.keys()
        for number, frequency in found.items():
            score = idf * (BM25_K1 + 1) * frequency / (frequency + 1)
            assert score == pytest.approx(rows[number])


def test_hits_beyond_those_that_are_ranked_again_have_the_bm25_of_full_text(
    tmp_path: Path,
) -> None:
    made = Corpus(tmp_path)
    made.fill({f"{number}.md": "pear " * (number + 1) + "x " * 50 for number in range(POOL + 20)})
    hits = made.kb.search("pear", limit=None, explain=True).hits
    values = [float(str((hit.explain or {})["bm25"])) for hit in hits]
    made.kb.close()
    assert len(values) == POOL + 20
    assert min(values) > 0
    assert values == sorted(values, reverse=True)


def test_a_word_that_most_documents_hold_still_counts(corpus: Corpus) -> None:
    hits = corpus.kb.search("boat sea wind", explain=True).hits
    scores = {word["word"]: word["score"] for hit in hits for word in (hit.explain or {})["words"]}
    assert scores["boat"] > 0.1  # FTS5 itself gives 0.000001
    assert 0 < weights.idf(5, 5) < weights.idf(3, 5) < weights.idf(1, 5) < weights.idf(0, 5)


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
        question = centre(reader, bare(model, vector))
        hits = nearest_documents(reader, question, reader.all_documents, None)
        assert len(hits) == 150
        shared = [hit.cosine - hit.nearness for hit in hits]
        assert max(shared) > 0.001 > -0.001 > min(shared)
        assert sum(shared) / len(shared) == pytest.approx(0, abs=0.01)
        assert hits[0].nearness == max(hit.nearness for hit in hits)
        some = [hit.document_id for hit in hits[:5]]
        whole = whole_documents(reader, question, some)
        # These documents have one chunk each.
        assert [whole[number].nearest for number in some] == hits[:5]
        openings = {number: document.opening for number, document in whole.items()}
        means = {number: document.mean for number, document in whole.items()}
        assert (
            means
            == openings
            == pytest.approx({hit.document_id: hit.nearness for hit in hits[:5]}, abs=1e-5)
        )
    corpus.kb.close()


def test_of_a_long_document_the_opening_and_the_nearest_chunks_are_known(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    filler = "The wind blows over the sea. " * 40
    sections = [f"## Part {number}\n\n{filler}" for number in range(4)]
    sections[2] += "A harbour with lanterns. " * 12
    sections[3] += "A harbour with lanterns. " * 4
    corpus.fill({"long.md": f"# Travels\n\n{filler}\n\n" + "\n\n".join(sections)})
    corpus.kb.embed()
    with corpus.store.reading() as reader:
        model = require_index(reader, None)
        question = bare(model, corpus.embedder.embed_query("harbour with lanterns"))
        rows = reader.vectors.for_documents(model, [1], 64)
        assert len(rows) > 3
        nearness = {
            chunk: float(vector_matrix([packed])[0] @ question.vector) for chunk, _, packed in rows
        }
        whole = whole_documents(reader, question, [1], most=2)[1]
    in_order = sorted(nearness, key=lambda chunk: -nearness[chunk])
    assert whole.chunk_ids == in_order[:2]
    assert whole.nearest.chunk_id == in_order[0]
    assert whole.opening == pytest.approx(nearness[rows[0][0]], abs=1e-5)
    assert whole.mean == pytest.approx(sum(nearness.values()) / len(nearness), abs=1e-5)
    assert whole.opening < whole.mean < whole.nearest.nearness
    corpus.kb.close()


SCRIPTS: tuple[Script, ...] = get_args(Script)


@pytest.mark.parametrize("script", SCRIPTS)
def test_relevance_rises_with_coverage_and_with_nearness(script: Script) -> None:
    def estimate(coverage: float | None, near: float | None) -> float:
        return judge.estimate(Grounds(coverage, near, documents=1000, script=script))

    shares = [number / 10 for number in range(11)]
    alone = [estimate(share, None) for share in shares]
    assert alone == sorted(alone)
    for share in shares:
        near = [estimate(share, level) for level in shares]
        assert near == sorted(near)
        held = [estimate(each, share) for each in shares]
        assert held == sorted(held)
    assert 0 < estimate(None, -99.0) < 0.05
    assert 0.7 < estimate(1.0, 99.0) < 1


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("near", [None, 0.5])
def test_relevance_rises_with_the_words_of_the_title_and_with_those_that_are_held(
    script: Script, near: float | None
) -> None:
    grounds = Grounds(0.5, near, documents=100, script=script)
    titles = [judge.estimate(grounds._replace(title=share / 4)) for share in range(5)]
    assert titles == sorted(set(titles))
    held = [judge.estimate(grounds._replace(held=number)) for number in range(9)]
    assert held == sorted(held)
    assert held[6] == held[8]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("near", [None, 0.3])
def test_one_shared_word_makes_no_lead_and_names_no_document(
    script: Script, near: float | None
) -> None:
    shared = Grounds(0.45, near, 0.6, documents=100, title=0.45, held=1, rest=0.0, script=script)
    without = shared._replace(lead=0.0, title=0.0)
    assert judge.estimate(shared) == judge.estimate(without)
    assert judge.estimate(shared._replace(rest=0.4)) > judge.estimate(without)


def test_one_shared_word_of_many_is_no_answer(corpus: Corpus) -> None:
    alone = corpus.kb.search("boat zeppelin quasar marmalade", explain=True)
    assert alone.hits[0].explain is not None
    assert alone.hits[0].explain["relevance"]["rest"] == 0
    assert alone.notice is not None
    for query in ("boat", "red boat", "red boat zeppelin quasar marmalade"):
        reply = corpus.kb.search(query, explain=True)
        assert reply.hits[0].explain is not None
        assert reply.hits[0].explain["relevance"]["rest"] > 0
    assert corpus.kb.search("red boat").notice is None


def test_the_rest_of_a_query_is_all_but_its_most_telling_shared_word() -> None:
    words = {"rare": 6.0, "known": 3.0, "common": 1.0}
    by_word = {word: weights.Word(1, idf) for word, idf in words.items()}
    query = QueryWords(parse_string("rare known common"), by_word, 10)
    assert query.rest_coverage([]) == query.rest_coverage(["rare"]) == 0
    assert query.rest_coverage(["rare", "common"]) == 1 / 4
    assert query.rest_coverage(["known", "common"]) == 1 / 7
    assert query.rest_coverage(list(words)) == 1
    one = query._replace(weights={"rare": by_word["rare"]})
    assert (one.rest_coverage([]), one.rest_coverage(["rare"])) == (0, 1)


def test_the_best_hit_of_a_hopeless_question_does_not_look_relevant(corpus: Corpus) -> None:
    (best, *_) = corpus.kb.search("why does my sea monkey get vaccinated against rabies").hits
    assert best.relevance < 0.4
    assert corpus.kb.search("red boat").hits[0].relevance > 0.8


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("near", [None, 0.5])
def test_relevance_rises_with_the_lead_and_falls_with_the_number_of_documents(
    script: Script, near: float | None
) -> None:
    def estimate(lead: float, documents: int) -> float:
        return judge.estimate(Grounds(0.5, near, lead, documents, script=script))

    leads = [estimate(lead / 10, 100) for lead in range(-10, 7)]
    assert leads == sorted(leads)
    assert leads[0] < leads[-1] == estimate(1.0, 100)
    sizes = [estimate(0.2, size) for size in (10, 100, 9999)]
    assert sizes == sorted(sizes, reverse=True)
    assert estimate(0.2, 0) == sizes[0]


def test_the_lead_is_the_distance_to_the_best_other_candidate() -> None:
    leads = judge.measure_leads([0.8, 0.6, 0.4, 0.4, 0.0], order="score")
    assert leads == pytest.approx([0.25, -0.25, -0.5, -0.5, -1.0])


@pytest.mark.parametrize(
    ("blends", "order"),
    [
        ([0.8, 0.6, 0.4, 0.4], "evidence"),
        ([0.8, 0.6, 0.4, 0.4, 0.0], "ranks"),
        ([0.0] * 5, "score"),
    ],
    ids=["few candidates", "ranks only", "no blend"],
)
def test_a_lead_that_says_nothing_is_taken_to_be_typical(blends: list[float], order: Order) -> None:
    leads = judge.measure_leads(blends, order=order)
    assert leads == [judge.TYPICAL_LEAD] * len(blends)


def test_the_lead_of_few_candidates_with_vectors_is_that_of_a_small_collection() -> None:
    leads = judge.measure_leads([0.8, 0.2], order="score", small=judge.SMALL_LEAD)
    assert leads == [judge.SMALL_LEAD] * 2


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_constants_fit_the_features(script: Script) -> None:
    """No feature lowers relevance, and each has a coefficient."""
    for near, order in product((None, 0.5), get_args(Order)):
        grounds = Grounds(0.5, near, script=script, order=order)
        assert len(grounds.constants) == 1 + len(judge.features(grounds))
        assert min(grounds.constants[1:]) >= 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_order_by_evidence_has_constants_and_a_threshold_of_its_own(script: Script) -> None:
    near = Grounds(0.5, 0.5, documents=100, script=script)
    ranked, best = (near._replace(order=order) for order in ("ranks", "evidence"))
    assert judge.estimate(near) == judge.estimate(ranked) != judge.estimate(best)
    assert near.least_confidence == ranked.least_confidence < best.least_confidence
    by_words = best._replace(nearness=None)
    assert judge.estimate(by_words) == judge.estimate(near._replace(nearness=None))
    assert by_words.least_confidence == near.least_confidence
