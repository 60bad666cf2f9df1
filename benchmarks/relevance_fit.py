"""Fit relevance, and measure how well it holds: pure functions over best hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The bins of the expected calibration error: ten of equal width, as in Guo et al., "On calibration
#: of modern neural networks", ICML 2017 (who use 15 for thousands of predictions).
ERROR_BINS = tuple(np.linspace(0, 1, 11))
#: The bins of the table: finer below, where most predictions are.
TABLE_BINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Draws of the error that a perfect prediction would have.
DRAWS = 1000
#: The weights of kinds of questions in a fit, by size of the collection. A little more than half of
#: the weight is that of questions that a page answers.
MASS: Mapping[tuple[str, str], float] = {
    ("whole", "question"): 4,
    ("whole", "title"): 0.75,
    ("whole", "word"): 0.75,
    ("whole", "elsewhere"): 0.75,
    ("whole", "absent"): 3,
    ("whole", "no such word"): 0.75,
    ("ten", "question"): 0.75,
    ("ten", "title"): 0.25,
    ("ten", "elsewhere"): 0.75,
    ("ten", "absent"): 0.25,
}
#: Source → how often it counts in a fit, for sources that all count once.
ONCE: Mapping[str, float] = MappingProxyType({})


class BestHit(NamedTuple):
    """
    The best hit of a search for a question.

    Attributes:
        source: The name of the database.
        answers: Whether the hit is a page that answers the question.
        features: What relevance is estimated from, by name; without those that are not known.
        dropped: Whether a page that answers is among the first ten of `vsearch` without a minimum
            score, but not with the default; None if there is no such page.
        script: What most words of the question are: `qmd.search.query.Script`.
    """

    search: str
    source: str
    size: str
    kind: str
    question: str
    answerable: bool
    answers: bool
    relevance: float
    features: Mapping[str, float]
    dropped: bool | None = None
    script: str = "alphabet"


def bins(predicted: Array, edges: Sequence[float]) -> list[tuple[float, float, NDArray[np.bool_]]]:
    """For each bin that is not empty: its edges, and which predictions are in it."""
    inner = np.digitize(predicted, edges[1:-1])
    parts = [(low, high, inner == n) for n, (low, high) in enumerate(pairwise(edges))]
    return [part for part in parts if part[2].any()]


def calibration_error(predicted: Array, answers: Array, weight: Array | None = None) -> float:
    """
    The expected calibration error: the mean over bins of |mean prediction - share that answers|.

    Each bin counts by its share of the questions. ``weight``: of each question; None for equal.
    """
    weight = np.ones(len(predicted)) if weight is None else weight
    error = 0.0
    for _, _, inside in bins(predicted, ERROR_BINS):
        part = weight[inside]
        error += abs(float(part @ (predicted[inside] - answers[inside])))
    return error / float(weight.sum())


def chance_error(predicted: Array) -> float:
    """The mean calibration error if each hit answered with exactly the predicted probability."""
    random = np.random.default_rng(0)
    draws = random.random((DRAWS, len(predicted))) < predicted
    return float(np.mean([calibration_error(predicted, draw.astype(float)) for draw in draws]))


def balance(hits: Sequence[BestHit], times: Mapping[str, float] = ONCE) -> Array:
    """
    The weight of each hit in a fit: that of its kind, shared by the hits of the same source.

    ``times``: Source → how often it counts; once if it is not there.
    """
    groups = [(hit.search, hit.source, hit.size, hit.kind) for hit in hits]
    sizes: dict[tuple[str, str, str, str], int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    weight = np.array(
        [times.get(group[1], 1.0) * MASS[group[2], group[3]] / sizes[group] for group in groups]
    )
    return weight * len(weight) / weight.sum()


def values(hits: Sequence[BestHit], features: Sequence[str]) -> Array:
    """float64[hits, 1 + features]: a one for the constant, and the features."""
    return np.array([(1.0, *(hit.features[name] for name in features)) for hit in hits])


def logistic(values: Array, constants: Array) -> Array:
    probability: Array = 1 / (1 + np.exp(-values @ constants))
    return probability


def regression(values: Array, answers: Array, weight: Array) -> Array:
    """
    Logistic regression by Newton's method, with a little of a ridge.

    No feature may lower the relevance: one whose coefficient is below 0 is left out (0).
    """
    kept = np.ones(values.shape[1], bool)
    while True:
        constants = np.zeros(values.shape[1])
        constants[kept] = _newton(values[:, kept], answers, weight)
        falling = constants < 0
        falling[0] = False
        if not falling.any():
            return constants
        kept[np.argmin(np.where(falling, constants, 0))] = False


def _newton(values: Array, answers: Array, weight: Array) -> Array:
    constants = np.zeros(values.shape[1])
    ridge = 1e-3 * np.eye(len(constants)) * len(answers) ** 0.5
    for _ in range(50):
        predicted = logistic(values, constants)
        slope = values.T @ (weight * (predicted - answers)) + ridge @ constants
        bend = (values * (weight * predicted * (1 - predicted))[:, None]).T @ values
        step = np.linalg.solve(bend + ridge, slope)
        constants -= step
        if np.abs(step).max() < 1e-9:
            break
    return constants


def left_out(
    hits: Sequence[BestHit],
    features: Sequence[str],
    group: Callable[[BestHit], str],
    times: Mapping[str, float] = ONCE,
) -> Array:
    """The prediction for each hit of a fit on the hits of the other groups."""
    table, answers = values(hits, features), np.array([hit.answers for hit in hits], float)
    groups = np.array([group(hit) for hit in hits])
    predicted = np.zeros(len(hits))
    for name in sorted(set(groups)):
        used = groups != name
        others = [hit for hit, is_used in zip(hits, used, strict=True) if is_used]
        constants = regression(table[used], answers[used], balance(others, times))
        predicted[~used] = logistic(table[~used], constants)
    return predicted


def log_loss(predicted: Array, answers: Array, weight: Array) -> float:
    """The mean negative log-likelihood, in nats; less is better."""
    safe = np.clip(predicted, 1e-6, 1 - 1e-6)
    likelihood = np.where(answers > 0, np.log(safe), np.log(1 - safe))
    return float(-np.average(likelihood, weights=weight))
