"""Merging runs: weights, bonus, order, bounds."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.search.candidates import Run
from qmd.search.rank import blend_scores, blend_weights, bonus, reciprocal_rank_fusion, share


def run(ids: list[int], weight: float = 2.0) -> Run:
    """A run of the query itself, or of weight 1: of an expansion."""
    type_: Literal["original", "expansion"] = "original" if weight == 2 else "expansion"
    return Run("fts", "q", type_, dict.fromkeys(ids, 1.0))


RUNS = st.lists(
    st.builds(run, st.lists(st.integers(1, 30), unique=True), st.sampled_from([1.0, 2.0])),
    min_size=1,
    max_size=5,
)


@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(runs: list[Run], random: object) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = reciprocal_rank_fusion(runs), reciprocal_rank_fusion(shuffled)
    assert list(one.items()) == list(two.items())


@given(RUNS)
def test_fused_scores_are_0_to_1_best_first_ties_by_id(runs: list[Run]) -> None:
    fused = reciprocal_rank_fusion(runs)
    order = [(-rrf, document_id) for document_id, rrf in fused.items()]
    assert order == sorted(order)
    assert all(0 < rrf <= 1 for rrf in fused.values())
    assert set(fused) == {number for r in runs for number in r.scores}


@given(RUNS)
def test_the_parts_add_up_to_the_score(runs: list[Run]) -> None:
    best = sum(r.weight / 61 for r in runs) + 0.05
    for document_id, rrf in reciprocal_rank_fusion(runs).items():
        ranked = [
            (r, list(r.scores).index(document_id) + 1) for r in runs if document_id in r.scores
        ]
        total = sum(share(r, rank) for r, rank in ranked) + bonus(min(rank for _, rank in ranked))
        assert rrf == pytest.approx(total / best)
        for r, rank in ranked:
            assert share(r, rank) == pytest.approx(r.weight / (60 + rank))


def test_a_document_on_top_of_every_run_scores_1() -> None:
    fused = reciprocal_rank_fusion([run([7, 8]), run([7, 9], 1.0)])
    assert next(iter(fused.items())) == (7, pytest.approx(1.0))


def test_the_bonus_is_for_the_first_three_ranks_and_counts_once() -> None:
    assert [bonus(rank) for rank in (1, 2, 3, 4)] == [0.05, 0.02, 0.02, 0.0]
    fused = reciprocal_rank_fusion([run([1, 2, 3, 4]), run([2, 1, 3, 4])])
    best = 4 / 61 + 0.05
    assert fused == pytest.approx(
        {
            1: (2 / 61 + 2 / 62 + 0.05) / best,
            2: (2 / 61 + 2 / 62 + 0.05) / best,
            3: (4 / 63 + 0.02) / best,
            4: 4 / 64 / best,
        }
    )


def test_the_original_query_weighs_twice_an_expansion() -> None:
    original, expansion = run([1]), run([2], 1.0)
    assert list(reciprocal_rank_fusion([original, expansion])) == [1, 2]
    assert share(original, 1) == 2 * share(expansion, 1)


def test_no_run_or_empty_runs_give_nothing() -> None:
    assert reciprocal_rank_fusion([]) == {}
    assert reciprocal_rank_fusion([run([])]) == {}


@pytest.mark.parametrize(
    ("rank", "weights"),
    [(0, (0.75, 0.25)), (2, (0.75, 0.25)), (3, (0.6, 0.4)), (9, (0.6, 0.4)), (10, (0.4, 0.6))],
)
def test_the_reranker_counts_more_further_down(rank: int, weights: tuple[float, float]) -> None:
    assert blend_weights(rank) == weights


@given(RUNS, st.dictionaries(st.integers(1, 30), st.floats(0, 1)))
def test_blended_scores_are_sorted_and_0_to_1(runs: list[Run], scores: dict[int, float]) -> None:
    fused = reciprocal_rank_fusion(runs)
    mixed = blend_scores(fused, scores)
    order = [(-score, document_id) for document_id, score in mixed.items()]
    assert order == sorted(order)
    assert all(0 <= score <= 1 for score in mixed.values())
    assert set(mixed) == set(fused)
    for rank, (document_id, rrf) in enumerate(fused.items()):
        by_rank, by_model = blend_weights(rank) if scores else (1.0, 0.0)
        parts = by_rank * rrf + by_model * scores.get(document_id, 0.0)
        assert mixed[document_id] == pytest.approx(parts)


def test_behind_the_candidates_a_document_has_nothing_from_the_reranker() -> None:
    fused = reciprocal_rank_fusion([run([1, 2])])
    mixed = blend_scores(fused, {1: 0.5})
    assert mixed == pytest.approx({1: 0.75 * fused[1] + 0.25 * 0.5, 2: 0.75 * fused[2]})


def test_without_a_reranker_the_fused_scores_stay() -> None:
    fused = reciprocal_rank_fusion([run([1, 2]), run([2, 3])])
    assert list(blend_scores(fused, {}).items()) == list(fused.items())


@given(RUNS)
def test_no_document_behind_the_candidates_comes_before_one_of_them(runs: list[Run]) -> None:
    fused = reciprocal_rank_fusion(runs)
    candidates = dict.fromkeys(list(fused)[:5], 0.0)
    assert set(list(blend_scores(fused, candidates))[:5]) == set(candidates)
