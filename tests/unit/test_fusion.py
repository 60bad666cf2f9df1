"""Merging runs: weights, bonus, order, bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.search.fuse import Run, reciprocal_rank_fusion
from qmd.search.rerank import blend_scores, blend_weights


def run(ids: list[int], weight: float = 2.0) -> Run:
    return Run("fts", "q", "original", weight, [(number, 1.0) for number in ids])


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
    assert [(f.document_id, f.rrf, f.bonus) for f in one] == [
        (f.document_id, f.rrf, f.bonus) for f in two
    ]


@given(RUNS)
def test_fused_scores_are_0_to_1_best_first_ties_by_id(runs: list[Run]) -> None:
    fused = reciprocal_rank_fusion(runs)
    assert [(-f.rrf, f.document_id) for f in fused] == sorted(
        (-f.rrf, f.document_id) for f in fused
    )
    assert all(0 < f.rrf <= 1 for f in fused)
    assert {f.document_id for f in fused} == {number for r in runs for number, _ in r.hits}


@given(RUNS)
def test_the_parts_add_up_to_the_score(runs: list[Run]) -> None:
    best = sum(r.weight / 61 for r in runs) + 0.05
    for fused in reciprocal_rank_fusion(runs):
        total = sum(part.contribution for part in fused.lists) + fused.bonus
        assert fused.rrf == pytest.approx(total / best)
        for part in fused.lists:
            assert part.contribution == pytest.approx(part.weight / (60 + part.rank))


def test_a_document_on_top_of_every_run_scores_1() -> None:
    fused = reciprocal_rank_fusion([run([7, 8]), run([7, 9], 1.0)])
    assert fused[0].document_id == 7
    assert fused[0].rrf == pytest.approx(1.0)


def test_the_bonus_is_for_the_first_three_ranks_and_counts_once() -> None:
    fused = reciprocal_rank_fusion([run([1, 2, 3, 4]), run([2, 1, 3, 4])])
    assert {f.document_id: f.bonus for f in fused} == {1: 0.05, 2: 0.05, 3: 0.02, 4: 0.0}


def test_the_original_query_weighs_twice_an_expansion() -> None:
    fused = reciprocal_rank_fusion([run([1]), run([2], 1.0)])
    assert [f.document_id for f in fused] == [1, 2]
    assert fused[0].lists[0].contribution == 2 * fused[1].lists[0].contribution


def test_no_run_or_empty_runs_give_nothing() -> None:
    assert reciprocal_rank_fusion([]) == []
    assert reciprocal_rank_fusion([run([])]) == []


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
    order = [(-item.score, item.fused.document_id) for item in mixed]
    assert order == sorted(order)
    assert all(0 <= item.score <= 1 for item in mixed)
    assert {item.fused.document_id for item in mixed} == {entry.document_id for entry in fused}
    for item in mixed:
        parts = item.by_rank * item.fused.rrf + item.by_model * (item.reranked or 0.0)
        assert item.score == pytest.approx(parts)


def test_behind_the_candidates_a_document_has_nothing_from_the_reranker() -> None:
    fused = reciprocal_rank_fusion([run([1, 2])])
    mixed = blend_scores(fused, {1: 0.5})
    by_id = {item.fused.document_id: (item.reranked, item.score) for item in mixed}
    rrf = [entry.rrf for entry in fused]
    assert by_id[1] == (0.5, pytest.approx(0.75 * rrf[0] + 0.25 * 0.5))
    assert by_id[2] == (None, pytest.approx(0.75 * rrf[1]))


def test_without_a_reranker_the_fused_scores_stay() -> None:
    fused = reciprocal_rank_fusion([run([1, 2]), run([2, 3])])
    assert [(item.fused.document_id, item.score) for item in blend_scores(fused, {})] == [
        (entry.document_id, entry.rrf) for entry in fused
    ]


@given(RUNS)
def test_no_document_behind_the_candidates_comes_before_one_of_them(runs: list[Run]) -> None:
    fused = reciprocal_rank_fusion(runs)
    candidates = {entry.document_id: 0.0 for entry in fused[:5]}
    mixed = blend_scores(fused, candidates)
    assert {item.fused.document_id for item in mixed[:5]} == set(candidates)
