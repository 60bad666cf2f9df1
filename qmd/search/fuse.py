"""
Fusion, a part of the third step of a search: merge several runs into one ranking.

`query` fuses the runs of both retrievers by reciprocal rank. `vsearch` fuses the runs of the query
and of its expansions by nearness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from qmd.search.meaning.nearness import SemanticHit, nearness_score
from qmd.search.meaning.retrieval import ExpandedRun, MeaningRun
from qmd.values import Source

#: The runs of the original query count twice as much as those of its expansions.
ORIGINAL_WEIGHT = 2.0
EXPANSION_WEIGHT = 1.0
#: The rank offset k of reciprocal rank fusion; 60 is the value of its authors.
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Run:
    """
    The ranking that one retriever made for one text.

    Attributes:
        source: "fts" for full text, "vec" for the vectors.
        query: The text that was searched for.
        weight: How much the run counts in fusion.
        hits: Document ids with the retriever's score, best first.
    """

    source: Source
    query: str
    type: Literal["original", "expansion"]
    weight: float
    hits: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Contribution:
    """
    The part of a document's fused score that one run adds.

    Attributes:
        rank: The document's rank in the run, from 1.
        score: The retriever's score.
        contribution: weight / (k + rank).
    """

    source: Source
    query: str
    type: str
    rank: int
    score: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Fused:
    """
    A document with its fused score.

    Attributes:
        lists: One contribution for each run that has the document.
        bonus: For a place among the first three of a run: 0.05, 0.02 or 0.
        rrf: (Sum of the contributions + bonus) / (the greatest possible sum), 0..1.
    """

    document_id: int
    lists: tuple[Contribution, ...]
    bonus: float
    rrf: float


def reciprocal_rank_fusion(runs: Sequence[Run], *, k: int = RRF_K) -> list[Fused]:
    """
    Merge ranked runs by summed reciprocal rank, with a bonus for the top of any run.

    Args:
        runs: Each best first; a document appears at most once per run.
        k: Rank offset, > 0; larger flattens the head.

    Returns:
        Best first; ties broken by document id, so the order is stable. Independent of the
        order of the runs.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009. The weights, and the bonus for a document's
    best rank (0.05 for rank 1, 0.02 for ranks 2 and 3), are those of tobi/qmd.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(run.weight / (k + 1) for run in runs) + 0.05
    contributions: dict[int, list[Contribution]] = {}
    for run in runs:
        for rank, (document_id, score) in enumerate(run.hits, 1):
            share = run.weight / (k + rank)
            contributions.setdefault(document_id, []).append(
                Contribution(run.source, run.query, run.type, rank, score, run.weight, share)
            )
    fused = []
    for document_id, parts in contributions.items():
        bonus = _bonus(min(part.rank for part in parts))
        total = fsum(part.contribution for part in parts) + bonus
        fused.append(Fused(document_id, tuple(parts), bonus, total / best_possible))
    return sorted(fused, key=lambda entry: (-entry.rrf, entry.document_id))


def _bonus(best_rank: int) -> float:
    if best_rank == 1:
        return 0.05
    return 0.02 if best_rank <= 3 else 0.0


@dataclass(frozen=True, slots=True)
class Nearest:
    """
    A document with its score by meaning.

    Attributes:
        hit: The chunk that the score is of.
        score: 0..1.
        original: The document's chunk nearest to the question.
        original_score: The score of that chunk for the question alone, 0..1.
        expansion: The expansion that raised the score, and the chunk's score for it, 0..1; None
            if no expansion raised it.
    """

    hit: SemanticHit
    score: float
    original: SemanticHit
    original_score: float
    expansion: tuple[str, float] | None = None


def fuse_by_nearness(original: MeaningRun, expanded: Sequence[ExpandedRun]) -> list[Nearest]:
    """
    Merge the run of a question and the runs of its expansions by nearness.

    A document's score for the question is `nearness_score`. Its score for an expansion is the mean
    of its scores for the question (weight 2) and for the expansion (weight 1). The best of these
    counts.

    Returns:
        Best first; ties by nearness, then by document id.
    """
    best: dict[int, Nearest] = {}
    for hit in original.hits:
        question_score = nearness_score(hit.nearness, original.spec)
        best[hit.document_id] = Nearest(hit, question_score, hit, question_score)
    for expanded_run in expanded:
        for hit in expanded_run.run.hits:
            candidate = _with_expansion(hit, expanded_run, original)
            other = best.get(hit.document_id)
            if other is None or (candidate.expansion and candidate.score > other.score):
                best[hit.document_id] = candidate
    return sorted(
        best.values(),
        key=lambda nearest: (-nearest.score, -nearest.hit.nearness, nearest.hit.document_id),
    )


def _with_expansion(hit: SemanticHit, expanded: ExpandedRun, original: MeaningRun) -> Nearest:
    plain = expanded.by_question.get(hit.document_id, hit)
    plain_score = nearness_score(plain.nearness, original.spec)
    expansion_score = nearness_score(hit.nearness, original.spec)
    total = ORIGINAL_WEIGHT + EXPANSION_WEIGHT
    mean = (ORIGINAL_WEIGHT * plain_score + EXPANSION_WEIGHT * expansion_score) / total
    if mean > plain_score:
        return Nearest(hit, mean, plain, plain_score, (expanded.run.text, expansion_score))
    return Nearest(plain, plain_score, plain, plain_score)
