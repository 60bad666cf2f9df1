"""The order of `query` by evidence: the scales, the sums, and what unknown values count."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd import KnowledgeBase, Settings
from qmd.search.evidence import (
    LEAST_SCORES,
    MODEL_WEIGHT,
    MOST,
    SCALE_DEPTH,
    WEIGHTS,
    Measure,
    measure_by_model,
    rank_by_evidence,
    trust,
)
from qmd.values import Hit, SearchRequest
from qmd.values.search import EvidencePart
from tests.support.corpus import Corpus
from tests.support.embedder import HashEmbedder

VALUES = st.dictionaries(st.integers(1, 150), st.floats(-1, 40), min_size=1, max_size=150)


def measure(
    part: EvidencePart,
    values: dict[int, float],
    zeros: int = 0,
    unknown: frozenset[int] = frozenset(),
) -> Measure:
    return Measure(part, "q", WEIGHTS[part], values, zeros, unknown_ids=unknown)


def test_a_document_far_ahead_in_one_part_comes_before_the_middling() -> None:
    words = {number: 10.0 - 0.01 * number for number in range(50)} | {90: 30.0}
    nearest = {number: 0.85 - 0.0001 * number for number in range(50)}
    measures = [measure("words", words, zeros=900), measure("nearest", nearest)]
    ranked = rank_by_evidence([0, 1, 49, 90], measures)
    assert ranked[0][0] == 90


def test_a_document_without_vectors_is_not_taken_for_a_far_one() -> None:
    nearest = {number: 0.80 + 0.005 * number for number in range(1, 8)}
    unknown = measure("nearest", nearest, unknown=frozenset({0}))
    assert unknown.value(0) == pytest.approx(0.82)
    assert unknown.contributions[0] == pytest.approx(unknown.contributions[4])
    assert 0 not in measure("nearest", nearest).contributions


def test_every_part_has_a_weight() -> None:
    assert set(WEIGHTS) == set(get_args(EvidencePart))


def two_sides(documents: int = 30) -> tuple[dict[int, float], dict[int, float], list[Measure]]:
    """Words and meaning that each know a half of what answers; the two halves, and the parts."""
    random = Random(5)
    words, near = ({each: random.gauss(0, 1) for each in range(documents)} for _ in range(2))
    return words, near, [measure("words", words), measure("nearest", near)]


def test_a_reranker_that_knows_what_both_sides_know_is_trusted() -> None:
    words, near, measures = two_sides()
    scores = {each: words[each] + near[each] for each in words}
    assert trust(scores, measures) == 1
    counted = measure_by_model("q", scores, measures, scores)
    assert (counted.part, counted.weight) == ("model", MODEL_WEIGHT)


def test_a_reranker_that_knows_nothing_or_one_side_hardly_counts() -> None:
    words, near, measures = two_sides()
    random = Random(3)
    assert trust(dict.fromkeys(words, 0.5), measures) == 0
    assert trust({each: -words[each] - near[each] for each in words}, measures) == 0
    for known in (dict.fromkeys(words, 0.0), words, near):
        found = [
            trust({each: value + random.gauss(0, 0.3) for each, value in known.items()}, measures)
            for _ in range(100)
        ]
        assert fsum(found) / len(found) < 0.3


def test_where_one_side_tells_nothing_the_other_is_asked() -> None:
    _, near, measures = two_sides()
    silent = measure("words", dict.fromkeys(near, 1.0))
    assert trust(near, [silent, measures[1]]) == 1
    assert trust(near, [silent]) == 0


def test_a_few_scores_say_nothing_about_a_reranker() -> None:
    words, near, measures = two_sides(LEAST_SCORES)
    scores = {each: words[each] + near[each] for each in words}
    assert trust(scores, measures) == 1
    del scores[0]
    assert trust(scores, measures) == 0


def test_what_a_reranker_did_not_reach_counts_as_average() -> None:
    words, near, measures = two_sides()
    scores = {each: words[each] + near[each] for each in range(20)}
    counted = measure_by_model("q", scores, measures, range(25))
    assert counted.value(22) == pytest.approx(fsum(scores.values()) / 20)
    assert 27 not in counted.contributions


@pytest.mark.parametrize("score", [0.0, 0.5])
def test_a_reranker_that_says_the_same_of_all_changes_nothing(corpus: Corpus, score: float) -> None:
    class Same:
        name = "same"

        def rerank(self, query: str, passages: list[str], *, timeout_s: float) -> list[float]:
            return [score] * len(passages)

    plain = corpus.kb.query("wind harbour city", limit=100)
    settings = Settings(embedder=corpus.embedder, reranker=Same())
    reply = KnowledgeBase(corpus.store, settings).query("wind harbour city", limit=100)
    assert reply.hits == plain.hits


def test_the_manual_has_the_weights() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")
    for part, weight in WEIGHTS.items():
        (row,) = [line for line in manual.splitlines() if line.startswith(f"| `{part}` | ")]
        assert row.endswith(f"| {weight:g} |")


def test_one_document_with_one_word_is_not_ten_deviations_away() -> None:
    words = measure("words", {1: 3.0}, zeros=999)
    mean, _, _ = words.scale
    assert words.standardise(3.0) == pytest.approx(MOST + mean / 0.298, abs=0.01)


def test_equal_evidence_keeps_the_order() -> None:
    same = measure("nearest", {1: 0.9, 2: 0.9})
    ranked = rank_by_evidence([2, 1], [same])
    assert ranked == [(2, 0.0), (1, 0.0)]


@given(VALUES, st.integers(0, 200))
def test_contributions_are_not_negative_and_rise_with_the_value(
    values: dict[int, float], zeros: int
) -> None:
    values = {number: abs(value) for number, value in values.items()}
    part = measure("words", values, zeros)
    ordered = sorted(values, key=lambda number: values[number])
    by_document = part.contributions
    contributions = [by_document[number] for number in ordered]
    assert contributions == sorted(contributions)
    assert min(contributions) >= 0
    assert [part.explain(number)["contribution"] for number in ordered] == contributions
    assert part.explain(999)["contribution"] == 0.0  # without a value it counts as the last one


@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order_of_the_parts(
    words: dict[int, float], nearest: dict[int, float], random: Any
) -> None:
    ids = sorted(words.keys() | nearest.keys())
    measures = [measure("words", words), measure("nearest", nearest)]
    ranked = rank_by_evidence(ids, measures)
    assert ranked == rank_by_evidence(ids, measures[::-1])
    totals = [total for _, total in ranked]
    assert totals == sorted(totals, reverse=True)
    assert all(total >= 0 for total in totals)
    random.shuffle(ids)
    assert dict(rank_by_evidence(ids, measures)) == dict(ranked)


# --- in a knowledge base ------------------------------------------------------------------

WORDS = ["red", "boat", "sea", "island", "city", "wind", "harbour"]
FILES = {
    f"{number:03}.md": f"# {WORDS[number % 7]}\n\n"
    + " ".join(WORDS[(number * step) % 7] for step in range(1, 3 + number % 23))
    + f" and {number}\n"
    for number in range(160)
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("evidence"))
    made.fill(FILES)
    made.kb.embed()
    yield made
    made.kb.close()


def parts(hit: Hit) -> list[dict[str, Any]]:
    assert hit.explain is not None
    shown: list[dict[str, Any]] = hit.explain["parts"]  # type: ignore[assignment]
    return shown


def by_hand(part: dict[str, Any]) -> float:
    """The contribution of a part, from the figures that are printed beside it."""

    def deviations(value: float) -> float:
        return min((max(value, part["last"]) - part["mean"]) / part["deviation"], 6.0)

    place = 1.25 / part["rank"] if part["rank"] else 0.0  # for a query of at most six words
    assert part["place"] == place
    if part["deviation"] <= 1e-6:
        return float(part["weight"] * place)
    standardised = deviations(part["value"]) - deviations(part["last"])
    return float(part["weight"] * (standardised + place))


@pytest.mark.parametrize("query", ["red boat", "island -9", '"sea island"', "wind harbour city"])
def test_the_explanation_can_be_computed_by_hand(corpus: Corpus, query: str) -> None:
    hits = corpus.kb.query(query, limit=100, explain=True).hits
    assert len(hits) > 30
    for hit in hits:
        assert hit.explain is not None
        for part in parts(hit):
            assert part["contribution"] == pytest.approx(by_hand(part))
        total = fsum(part["contribution"] for part in parts(hit))
        assert hit.explain["sum"] == total
        assert hit.explain["blend"] == total / hit.explain["best"]  # type: ignore[operator]
    best = hits[0].explain
    assert best is not None
    assert best["sum"] == best["best"]


def test_contributions_fall_with_the_rank_in_a_run(corpus: Corpus) -> None:
    hits = corpus.kb.query("wind harbour city", limit=160, explain=True).hits
    for number in (0, 1):
        ranked = sorted(
            (part["rank"], part["contribution"])
            for hit in hits
            for part in [parts(hit)[number]]
            if part["rank"] is not None
        )
        assert len(ranked) >= SCALE_DEPTH
        contributions = [contribution for _, contribution in ranked]
        assert contributions == sorted(contributions, reverse=True)


#: The embedder of the corpus gives no token states; test_late_interaction.py leaves them out.
MEASURED = [part for part in get_args(EvidencePart) if part not in ("tokens", "english")]


@pytest.mark.parametrize("without", [(), *((part,) for part in MEASURED), tuple(MEASURED)])
def test_parts_can_be_left_out(corpus: Corpus, without: tuple[EvidencePart, ...]) -> None:
    request = SearchRequest("red boat", explain=True, without=without)
    hits = corpus.kb.run_search("query", request).hits
    assert hits
    for hit in hits:
        assert {shown["part"] for shown in parts(hit)} == set(MEASURED) - set(without)


def test_documents_without_vectors_are_ranked_beside_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.md").write_text(
            f"# Boat {number}\n\nThe boat {'red ' * number}sails\n"
        )
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(folder)
        kb.index()
        kb.embed()
        (folder / "new.md").write_text("# Red boat\n\nred boat red boat\n")
        kb.index()
        hits = {hit.path: hit for hit in kb.query("red boat", explain=True).hits}
    nearest = next(part for part in parts(hits["new.md"]) if part["part"] == "nearest")
    assert nearest["value"] == nearest["mean"]
    assert nearest["contribution"] > 0


def test_places_count_for_queries_of_a_few_words(corpus: Corpus) -> None:
    def places(query: str) -> set[float]:
        hits = corpus.kb.query(query, limit=1, explain=True).hits
        return {part["place"] for hit in hits for part in parts(hit) if part["rank"] == 1}

    assert places("red boat sea island city wind") == {1.25}
    assert places("red boat sea island city wind harbour") <= {0.0}
