"""Merging the runs of several retrievers and of several texts into one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from qmd.search.meaning.nearness import SemanticHit, nearness_score
from qmd.search.meaning.retrieval import ExpandedRun, MeaningRun
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
    """The part that one run adds to a document's score; ``rank`` is 1-based."""

    source: Source
    query: str
    type: str
    rank: int
    score: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A document's fused score: ``rrf`` = (sum of contributions + bonus) / best possible, 0..1."""

    document: int
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

    Source: Cormack, Clarke and Büttcher, SIGIR 2009; bonus (+0.05 for rank 1, +0.02 for
    ranks 2 and 3, the best one counts) and weights from source 003.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(run.weight / (k + 1) for run in runs) + 0.05
    contributions: dict[int, list[Contribution]] = {}
    for run in runs:
        for rank, (document, score) in enumerate(run.hits, 1):
            share = run.weight / (k + rank)
            contributions.setdefault(document, []).append(
                Contribution(run.source, run.query, run.type, rank, score, run.weight, share)
            )
    fused = []
    for document, parts in contributions.items():
        bonus = _bonus(min(part.rank for part in parts))
        total = fsum(part.contribution for part in parts) + bonus
        fused.append(Fused(document, tuple(parts), bonus, total / best_possible))
    return sorted(fused, key=lambda entry: (-entry.rrf, entry.document))


def _bonus(best_rank: int) -> float:
    if best_rank == 1:
        return 0.05
    return 0.02 if best_rank <= 3 else 0.0


@dataclass(frozen=True, slots=True)
class Nearest:
    """
    A document's score by meaning and the chunk that has it.

    ``original`` is its chunk nearest to the question, with ``original_score``. ``expansion`` is
    the text that raised the score, with that text's score, or None.
    """

    hit: SemanticHit
    score: float
    original: SemanticHit
    original_score: float
    expansion: tuple[str, float] | None = None


def fuse_by_nearness(original: MeaningRun, expanded: Sequence[ExpandedRun]) -> list[Nearest]:
    """
    The best of a document's score for the question and, for each expansion, of the mean of the
    question's (weight 2) and the expansion's (1). Best first, ties by nearness, then by id.
    """
    best: dict[int, Nearest] = {}
    for hit in original.hits:
        question_score = nearness_score(hit.nearness, original.spec)
        best[hit.document] = Nearest(hit, question_score, hit, question_score)
    for each in expanded:
        for hit in each.run.hits:
            candidate = _with_expansion(hit, each, original)
            other = best.get(hit.document)
            if other is None or (candidate.expansion and candidate.score > other.score):
                best[hit.document] = candidate
    return sorted(
        best.values(), key=lambda item: (-item.score, -item.hit.nearness, item.hit.document)
    )


def _with_expansion(hit: SemanticHit, expanded: ExpandedRun, original: MeaningRun) -> Nearest:
    plain = expanded.by_question.get(hit.document, hit)
    plain_score = nearness_score(plain.nearness, original.spec)
    expansion_score = nearness_score(hit.nearness, original.spec)
    total = ORIGINAL_WEIGHT + EXPANSION_WEIGHT
    mean = (ORIGINAL_WEIGHT * plain_score + EXPANSION_WEIGHT * expansion_score) / total
    if mean > plain_score:
        return Nearest(hit, mean, plain, plain_score, (expanded.run.text, expansion_score))
    return Nearest(plain, plain_score, plain, plain_score)
