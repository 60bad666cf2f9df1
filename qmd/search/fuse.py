"""Merging ranked runs into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

from qmd.values import Source

#: Source 003: the original query's runs weigh 2, those of expansions 1.
ORIGINAL_WEIGHT = 2.0
EXPANSION_WEIGHT = 1.0
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Run:
    """One retriever's answer to one query: document ids with the retriever's score, best first."""

    source: Source
    query: str
    type: Literal["original", "expansion"]
    weight: float
    hits: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one run adds to a document; ``rank`` is 1-based."""

    source: Source
    query: str
    type: str
    rank: int
    score: float
    weight: float
    contribution: float


@dataclass(slots=True)
class Fused:
    """A document's fused score: ``rrf`` = (sum of contributions + bonus) / best possible, 0..1."""

    document: int
    lists: list[Contribution] = field(default_factory=list)
    bonus: float = 0.0
    rrf: float = 0.0


def reciprocal_rank_fusion(runs: Sequence[Run], *, k: int = RRF_K) -> list[Fused]:
    """
    Merge ranked runs by summed reciprocal rank, with a bonus for the top of any run.

    Args:
        runs: Each best first; a document appears at most once per run.
        k: Rank offset, > 0; larger flattens the head.

    Returns:
        Best first; ties broken by document id, so the order is stable. Independent of the
        order of the runs.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009; bonus (+0.05 for rank 1, +0.02 for
    ranks 2 and 3, the best one counts) and weights from source 003.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(run.weight / (k + 1) for run in runs) + 0.05
    fused: dict[int, Fused] = {}
    for run in runs:
        for rank, (document, score) in enumerate(run.hits):
            entry = fused.setdefault(document, Fused(document))
            entry.lists.append(
                Contribution(
                    run.source,
                    run.query,
                    run.type,
                    rank + 1,
                    score,
                    run.weight,
                    run.weight / (k + rank + 1),
                )
            )
            bonus = 0.05 if rank == 0 else 0.02 if rank <= 2 else 0.0
            entry.bonus = max(entry.bonus, bonus)
    for entry in fused.values():
        parts = fsum(part.contribution for part in entry.lists)
        entry.rrf = (parts + entry.bonus) / best_possible
    return sorted(fused.values(), key=lambda entry: (-entry.rrf, entry.document))


def blend_weights(rank: int) -> tuple[float, float]:
    """Weights of fused and reranked score for a 0-based rank (source 003)."""
    if rank < 3:
        return 0.75, 0.25
    if rank < 10:
        return 0.60, 0.40
    return 0.40, 0.60


#: The fused score enters a blend as its eighth root. Its own range is so wide (a document that
#: is tenth in both lists has half of the first one's) that a reranker could hardly move anything
#: past the first three; measured, the blend then lost half of what the reranker gains.
ROOT = 8


@dataclass(frozen=True, slots=True)
class Blended:
    """``score`` = by_rank * rrf + by_model * reranked (None: 0), 0..1."""

    fused: Fused
    rrf: float
    reranked: float | None
    by_rank: float
    by_model: float
    score: float


def blend(fused: Sequence[Fused], reranked: Mapping[int, float]) -> list[Blended]:
    """
    Mix fused and reranked scores by rank, and sort by the result.

    Args:
        fused: Best first.
        reranked: Document id → 0..1; if there are none at all, the fused scores stay as they
            are. A document without one, behind the candidates, has 0.

    Returns:
        Best first, ties by document id.
    """
    if not reranked:
        return [Blended(entry, entry.rrf, None, 1.0, 0.0, entry.rrf) for entry in fused]
    mixed = []
    for rank, entry in enumerate(fused):
        value = reranked.get(entry.document)
        by_rank, by_model = blend_weights(rank)
        rrf = entry.rrf ** (1 / ROOT)
        score = by_rank * rrf + by_model * (value or 0.0)
        mixed.append(Blended(entry, rrf, value, by_rank, by_model, score))
    return sorted(mixed, key=lambda item: (-item.score, item.fused.document))
