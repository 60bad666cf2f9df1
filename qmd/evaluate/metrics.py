"""
The metrics of one ranking: pure functions of the ranking and the judgments.

A ranking is document names, best first, each once. Judged is name → grade; a grade of 0 or
less is "looked at, and not relevant", a name that is missing was not looked at, and both
count alike. The definitions are those of trec_eval, so figures may be compared with
published ones. Every metric is 0..1, and a question without any relevant document has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, log2

Ranking = Sequence[str]
Judged = Mapping[str, int]


def ndcg(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """
    Normalised discounted cumulative gain of the first ``k`` (trec_eval: ``ndcg_cut.k``).

    The gain is the grade itself, the discount log2(rank + 1), the ideal all judged documents
    in order of their grades (Järvelin and Kekäläinen 2002, as trec_eval reads it).
    """
    ideal = _dcg(sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k])
    if ideal == 0:
        raise ValueError("no document was judged relevant")
    return min(1.0, _dcg([max(0, judged.get(name, 0)) for name in ranking[:k]]) / ideal)


def _dcg(gains: Sequence[int]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))


def reciprocal_rank(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """1 / rank of the first relevant document, 0 if the first ``k`` hold none (MRR@k)."""
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
"""What `qmd.evaluate.run` measures, in the order of its table."""

DEPTH = 100
"""As many hits as the deepest of these looks at."""
