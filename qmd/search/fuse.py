"""
Fusion: merges several runs into one order by reciprocal rank, and mixes in a reranker's scores.

Both orders are for `query` without vectors, with `--no-rerank` or with a reranker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from qmd.search.candidates import Run

#: The rank offset k of reciprocal rank fusion; 60 is the value of its authors.
RRF_K = 60


def reciprocal_rank_fusion(runs: Sequence[Run], *, k: int = RRF_K) -> dict[int, float]:
    """
    Merge ranked runs by summed reciprocal rank, with a bonus for the top of any run.

    Args:
        runs: Each best first.
        k: Rank offset, > 0; larger flattens the head.

    Returns:
        Document id → (sum of its `share` of each run + its `bonus`) / (the greatest possible sum),
        0..1. Best first; ties broken by document id, so the order is stable. Independent of the
        order of the runs.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009. The weights, and the bonus for a document's
    best rank (0.05 for rank 1, 0.02 for ranks 2 and 3), are those of tobi/qmd.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(share(run, 1, k) for run in runs) + 0.05
    shares: dict[int, list[float]] = {}
    best_ranks: dict[int, int] = {}
    for run in runs:
        for document_id, rank in run.ranks.items():
            shares.setdefault(document_id, []).append(share(run, rank, k))
            best_ranks[document_id] = min(rank, best_ranks.get(document_id, rank))
    fused = {
        document_id: (fsum(parts) + bonus(best_ranks[document_id])) / best_possible
        for document_id, parts in shares.items()
    }
    return _sorted(fused)


def share(run: Run, rank: int, k: int = RRF_K) -> float:
    """What a rank in a run adds to a fused score."""
    return run.weight / (k + rank)


def bonus(best_rank: int) -> float:
    """What a document's best rank in any run adds to its fused score."""
    if best_rank == 1:
        return 0.05
    return 0.02 if best_rank <= 3 else 0.0


def blend_weights(rank: int) -> tuple[float, float]:
    """
    The weights of the fused and of the reranked score, which add up to 1.

    Args:
        rank: The document's rank after fusion, from 0.

    Source: tobi/qmd. The better the fused rank, the less a reranker may change it.
    """
    if rank < 3:
        return 0.75, 0.25
    if rank < 10:
        return 0.60, 0.40
    return 0.40, 0.60


def blend_scores(fused: Mapping[int, float], reranked: Mapping[int, float]) -> dict[int, float]:
    """
    Mix fused scores and a model's scores by rank, and sort by the result.

    Args:
        fused: Document id → fused score, best first.
        reranked: Document id → score, 0..1. If it is empty, the fused scores stay as they are.
            A document that is missing counts as 0.

    Returns:
        Document id → `blend_weights` · (fused, reranked), 0..1; best first, ties by document id.
    """
    if not reranked:
        return dict(fused)
    mixed = {}
    for rank, (document_id, rrf) in enumerate(fused.items()):
        by_rank, by_model = blend_weights(rank)
        mixed[document_id] = by_rank * rrf + by_model * reranked.get(document_id, 0.0)
    return _sorted(mixed)


def _sorted(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
