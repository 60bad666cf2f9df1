"""What the calibration bench computes: the calibration error and the fit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import relevance_fit as fit


def hit(number: int, coverage: float, answers: bool) -> fit.BestHit:
    features = {"coverage": coverage, "noise": float(number % 3), "harm": -coverage}
    return fit.BestHit(
        "query", "notes", "whole", "question", f"q{number}", True, answers, 0.5, features
    )


def random_hits(count: int) -> list[fit.BestHit]:
    random = np.random.default_rng(1)
    coverage = random.random(count)
    answers = random.random(count) < 1 / (1 + np.exp(2 - 5 * coverage))
    drawn = enumerate(zip(coverage, answers, strict=True))
    return [hit(number, float(c), bool(a)) for number, (c, a) in drawn]


def test_the_calibration_error_is_the_weighted_distance_of_the_bins() -> None:
    predicted = np.array([0.15, 0.15, 0.75, 0.75])
    answers = np.array([0.0, 1.0, 1.0, 1.0])
    assert fit.calibration_error(predicted, answers) == pytest.approx((0.35 + 0.25) / 2)
    weight = np.array([1.0, 1.0, 3.0, 3.0])
    assert fit.calibration_error(predicted, answers, weight) == pytest.approx(0.275)


def test_a_relevance_of_one_is_in_the_last_bin() -> None:
    ((low, high, inside),) = fit.bins(np.array([1.0, 0.95]), fit.ERROR_BINS)
    assert (round(low, 1), high, inside.all()) == (0.9, 1.0, True)


@pytest.mark.nightly
def test_even_a_perfect_prediction_has_an_error_in_few_questions() -> None:
    few, many = np.full(20, 0.5), np.full(20_000, 0.5)
    assert fit.chance_error(few) > 0.05 > fit.chance_error(many)


def test_the_fit_recovers_what_the_answers_were_drawn_from() -> None:
    hits = random_hits(4000)
    answers = np.array([each.answers for each in hits], float)
    constants = fit.regression(fit.values(hits, ["coverage"]), answers, fit.balance(hits))
    assert constants == pytest.approx([-2, 5], abs=0.4)


def test_no_feature_lowers_relevance() -> None:
    hits = random_hits(400)
    answers = np.array([each.answers for each in hits], float)
    constants = fit.regression(fit.values(hits, ["coverage", "harm"]), answers, np.ones(400))
    assert constants[1] > 0
    assert constants[2] == 0


def test_kinds_weigh_the_same_however_many_questions_they_have() -> None:
    one = hit(0, 0.5, True)
    hits = [one, one._replace(kind="absent"), one._replace(kind="absent")]
    assert fit.balance(hits).tolist() == pytest.approx([12 / 7, 9 / 14, 9 / 14])
    vault = one._replace(source="vault")
    assert fit.balance([one, vault], {"vault": 3}).tolist() == pytest.approx([0.5, 1.5])


def test_left_out_predictions_do_not_depend_on_the_answer_of_their_question() -> None:
    hits = random_hits(60)
    turned = [hits[0]._replace(answers=not hits[0].answers), *hits[1:]]
    first, second = (
        fit.left_out(some, ["coverage"], lambda each: each.question)[0] for some in (hits, turned)
    )
    assert first == second
