"""
Compares two systems on the same questions: the mean difference of a metric, and its interval.

The difference is paired: it is taken for each question, so that hard and easy questions cancel
out. Its interval comes from the bootstrap (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, ch. 13; for retrieval: Sakai, SIGIR 2006): each resample draws as many questions
as there are, with replacement, and the middle 95 % of the means of all resamples are the
interval. The same questions give the same interval on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, fsum
from typing import TYPE_CHECKING

from qmd import libraries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 20061
RESAMPLES = 5000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of (other - baseline) over the questions, and its interval."""

    mean: float
    low: float
    high: float

    def __neg__(self) -> Difference:
        """The difference of the baseline from the other."""
        return Difference(-self.mean, -self.high, -self.low)

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


class Resampling:
    """The draws for ``questions`` questions; all comparisons use the same draws."""

    def __init__(self, questions: int, *, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        """
        Args:
            questions: The number of questions, at least 1.
            resamples: The number of resamples, each of as many questions.
        """
        # Python's generator gives the same numbers in every version; numpy's need not.
        draw = random.Random(seed).random  # noqa: S311  no secret
        self._times = libraries.np.zeros((resamples, questions), libraries.np.uint16)
        for row in self._times:
            for _ in range(questions):
                row[floor(draw() * questions)] += 1

    def compare(self, baseline: Sequence[float], other: Sequence[float]) -> Difference:
        """The difference of two systems; both lists have a figure per question, in one order."""
        differences = libraries.np.array(other, libraries.np.float64) - libraries.np.array(
            baseline, libraries.np.float64
        )
        means = libraries.np.sort(self._times @ differences) / len(differences)
        low, high = _quantile(means, (1 - LEVEL) / 2), _quantile(means, (1 + LEVEL) / 2)
        return Difference(mean(list(differences)), low, high)


def _quantile(ordered: NDArray[np.float64], share: float) -> float:
    return float(ordered[min(len(ordered) - 1, floor(share * len(ordered)))])


def mean(values: Sequence[float]) -> float:
    """The mean; the sum is exact, so the order of the values does not matter."""
    return fsum(values) / len(values)
