"""The metrics are those of trec_eval; the intervals are the same on every machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.evaluate.run import (
    METRICS,
    Difference,
    Resampling,
    mean,
    ndcg,
    recall,
    reciprocal_rank,
    success,
)

NAMES = [f"d{number}" for number in range(12)]
RANKINGS = st.lists(st.sampled_from(NAMES), unique=True)
JUDGED = st.dictionaries(st.sampled_from(NAMES), st.integers(-1, 4)).filter(
    lambda judged: any(grade > 0 for grade in judged.values())
)


def test_ndcg_of_the_textbook_example() -> None:
    # Six graded hits, and two more documents that were not found: DCG 6.861, ideal 8.740.
    judged = {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2, "g": 3, "h": 2}
    assert ndcg(list("abcdef"), judged, 6) == pytest.approx(0.785, abs=0.0005)
    found = {name: judged[name] for name in "abcdef"}
    assert ndcg(list("abcdef"), found, 6) == pytest.approx(0.961, abs=0.0005)


def test_ndcg_of_one_relevant_document_tells_its_rank() -> None:
    ranking = [f"d{number}" for number in range(1, 12)]
    values = [ndcg(ranking, {f"d{rank}": 1}) for rank in (1, 2, 3, 10, 11)]
    assert values == pytest.approx([1, 0.630930, 0.5, 0.289065, 0], abs=1e-6)


def test_ndcg_counts_grades_not_powers_of_two() -> None:
    # trec_eval's gain is the grade; 2^grade - 1 would be 0.71 here.
    assert ndcg(["low", "high"], {"low": 1, "high": 3}) == pytest.approx(
        (1 + 3 / 1.5849625) / (3 + 1 / 1.5849625)
    )


def test_the_other_metrics_by_hand() -> None:
    ranking, judged = ["x", "a", "y", "b"], {"a": 1, "b": 2, "c": 1, "x": 0, "y": -1}
    assert reciprocal_rank(ranking, judged) == 0.5
    assert reciprocal_rank(ranking, judged, 1) == 0
    assert [success(ranking, judged, k) for k in (1, 2, 4)] == [0, 1, 1]
    assert [recall(ranking, judged, k) for k in (1, 2, 4)] == [0, 1 / 3, 2 / 3]


def test_a_question_without_an_answer_has_no_share() -> None:
    for metric in (ndcg, recall):
        with pytest.raises(ValueError, match="no document was judged relevant"):
            metric(["a"], {"a": 0})


@given(RANKINGS, JUDGED)
def test_every_metric_lies_between_0_and_1(ranking: list[str], judged: dict[str, int]) -> None:
    assert all(0 <= metric(ranking, judged) <= 1 for metric in METRICS.values())


@given(JUDGED, RANKINGS)
def test_the_best_order_scores_1_and_what_was_not_judged_can_only_push_it_down(
    judged: dict[str, int], others: list[str]
) -> None:
    best = sorted((name for name in judged if judged[name] > 0), key=lambda n: -judged[n])
    assert all(metric(best, judged) == pytest.approx(1) for metric in METRICS.values())
    spoiled = [name for name in others if judged.get(name, 0) <= 0] + best
    for metric in METRICS.values():
        assert metric(spoiled, judged) <= metric(best, judged)


@given(RANKINGS, JUDGED, st.randoms(use_true_random=False))
def test_documents_of_one_grade_are_interchangeable(
    ranking: list[str], judged: dict[str, int], random: object
) -> None:
    by_grade: dict[int, list[str]] = {}
    for name in ranking:
        by_grade.setdefault(max(0, judged.get(name, 0)), []).append(name)
    for names in by_grade.values():
        random.shuffle(names)  # type: ignore[attr-defined]
    shuffled = [by_grade[max(0, judged.get(name, 0))].pop() for name in ranking]
    for metric in METRICS.values():
        assert metric(shuffled, judged) == metric(ranking, judged)


@given(RANKINGS, JUDGED)
def test_what_is_behind_the_cut_does_not_count(ranking: list[str], judged: dict[str, int]) -> None:
    for k in (1, 3, 10):
        for metric in (ndcg, reciprocal_rank, success, recall):
            assert metric(ranking[:k], judged, k) == metric(ranking, judged, k)


# --- differences ---------------------------------------------------------------------

FIGURES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


@given(FIGURES)
def test_an_interval_is_a_mirror_of_the_other_way_round(pairs: list[tuple[float, float]]) -> None:
    one, two = [a for a, _ in pairs], [b for _, b in pairs]
    resampling = Resampling(len(pairs), resamples=200)
    there, back = resampling.compare(one, two), resampling.compare(two, one)
    assert there.mean == pytest.approx(mean(two) - mean(one))
    assert back.mean == pytest.approx(-there.mean)
    assert -1 <= there.low <= there.high <= 1
    differences = [b - a for a, b in pairs]
    assert min(differences) - 1e-9 <= there.low
    assert there.high <= max(differences) + 1e-9


def test_the_same_questions_give_the_same_interval_everywhere() -> None:
    baseline = [0.0, 1.0, 0.5, 0.0, 1.0, 0.25, 0.0, 1.0, 0.5, 0.0]
    other = [0.5, 1.0, 1.0, 0.0, 0.5, 0.25, 1.0, 1.0, 0.5, 0.5]
    found = Resampling(10).compare(baseline, other)
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, -0.05, 0.45))


def test_an_interval_is_sure_when_zero_lies_outside() -> None:
    assert Difference(0.2, 0.1, 0.3).sure
    assert Difference(-0.2, -0.3, -0.1).sure
    assert not Difference(0.1, -0.01, 0.2).sure
    assert not Difference(0.0, 0.0, 0.0).sure


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    # 200 samples of 40 questions from a population whose mean difference is 0.1.
    import random

    source = random.Random(3)
    resampling = Resampling(40, resamples=500)
    covered = 0
    for _ in range(200):
        differences = [source.choice([-0.5, 0.0, 0.0, 0.5, 0.5]) for _ in range(40)]
        found = resampling.compare([0.5] * 40, [0.5 + each for each in differences])
        covered += found.low <= 0.1 <= found.high
    assert 0.90 <= covered / 200 <= 0.99
