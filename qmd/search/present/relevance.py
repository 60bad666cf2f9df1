"""
How likely is it that a hit answers the question, whatever its rank?

A score orders the hits of one reply, and a best hit there always is. `relevance` is an estimated
chance: of best hits that have 0.7, about seven in ten answered their question, where every other
question had an answer in the collection at all. It is a logistic regression on two things that
do not depend on the rank, fitted by ``benchmarks/relevance.py``; docs/search.md shows how well
it holds.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

#: Constant, and what coverage adds, where no vectors were asked.
WORDS = (-2.48, 4.65)
#: Constant, and what coverage and nearness add.
BOTH = (-4.17, 3.76, 3.49)
#: Nearness beyond these says nothing more.
NEAREST, FARTHEST = 1.25, -0.5


class Evidence(NamedTuple):
    """
    ``coverage``: the share of the query's words that the document holds, rare ones counting more
    (also those that no document holds); 1 for an exact hit, None where no words were asked for.
    ``near``: nearness in meaning, the model's off-topic level being 0, its on-topic level 1
    (`qmd.search.meaning.retrieval.level`); None where it is not known.
    """

    coverage: float | None
    near: float | None


def estimate(evidence: Evidence) -> float:
    """0..1; rises with coverage and with nearness."""
    coverage = 0.0 if evidence.coverage is None else evidence.coverage
    if evidence.near is None:
        constant, by_words = WORDS
        total = constant + by_words * coverage
    else:
        constant, by_words, by_near = BOTH
        near = min(max(evidence.near, FARTHEST), NEAREST)
        total = constant + by_words * coverage + by_near * near
    return 1 / (1 + exp(-total))
