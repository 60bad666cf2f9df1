"""
Computes the metrics of one ranking, as pure functions of the ranking and the judgments.

A ranking lists document names, best first, without repetition. Judged maps name → grade. A grade
of 0 or less means "not relevant", and a document without a grade counts as not relevant too. The
definitions are those of trec_eval, so figures may be compared with published ones. Every metric
is 0 to 1; it is not defined for a question without any relevant document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, log2

Ranking = Sequence[str]
Judged = Mapping[str, int]


def ndcg(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """
    Normalised discounted cumulative gain of the first ``k`` (trec_eval: ``ndcg_cut.k``).

    The gain is the grade itself, and the discount is log2(rank + 1). The ideal ranking has all
    judged documents in order of their grades (Järvelin and Kekäläinen 2002, as in trec_eval).
    """
    ideal = _dcg(sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k])
    if ideal == 0:
        raise ValueError("no document was judged relevant")
    return min(1.0, _dcg([max(0, judged.get(name, 0)) for name in ranking[:k]]) / ideal)


def _dcg(gains: Sequence[int]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))


def reciprocal_rank(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """1 / rank of the first relevant document, 0 if it is not among the first ``k`` (MRR@k)."""
    for rank, name in enumerate(ranking[:k], 1):
        if judged.get(name, 0) > 0:
            return 1 / rank
    return 0.0


def success(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """1 if a relevant document is among the first ``k``, else 0 (trec_eval: ``success.k``)."""
    return float(any(judged.get(name, 0) > 0 for name in ranking[:k]))


def recall(ranking: Ranking, judged: Judged, k: int = 100) -> float:
    """The share of all relevant documents among the first ``k`` (trec_eval: ``recall.k``)."""
    relevant = sum(grade > 0 for grade in judged.values())
    if relevant == 0:
        raise ValueError("no document was judged relevant")
    return sum(judged.get(name, 0) > 0 for name in ranking[:k]) / relevant


METRICS: Mapping[str, Callable[[Ranking, Judged], float]] = {
    "nDCG@10": ndcg,
    "MRR@10": reciprocal_rank,
    "success@1": lambda ranking, judged: success(ranking, judged, 1),
    "success@10": success,
    "recall@100": recall,
}
"""The metrics that `qmd.evaluate.run` measures, in the order of its table."""

DEPTH = 100
"""The number of hits to request: the largest rank that a metric looks at."""
