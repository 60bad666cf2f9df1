"""
The third step of `vsearch` and `query`: put the documents of all runs in order.

For `query` there are three orders. Where there are vectors, the evidence decides
(`qmd.search.evidence`). If the user has named a reranker, its scores and the fused ranks are mixed.
Without vectors, and with `--no-rerank`, the fused ranks alone decide (`qmd.search.fuse`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from qmd.search import meaning
from qmd.search.candidates import EXPANSION_WEIGHT, ORIGINAL_WEIGHT, Candidate
from qmd.search.evidence import measure_documents, rank_by_evidence
from qmd.search.fuse import (
    ask_model,
    blend_scores,
    blend_weights,
    bonus,
    passages_of,
    reciprocal_rank_fusion,
    share,
)
from qmd.search.question import RUN_DEPTH, Question
from qmd.search.retrieve import Retrieved
from qmd.values import ModelSpec, SearchRequest

if TYPE_CHECKING:
    from qmd.search.meaning.nearness import QuestionVector
    from qmd.search.question import SearchModels
    from qmd.store import Reader

Explain = Callable[[int], Mapping[str, Any]]
"""Gives the parts of the blend of a document."""


def rank(
    reader: Reader,
    request: SearchRequest,
    question: Question,
    retrieved: Retrieved,
    models: SearchModels,
) -> None:
    """
    Put the documents of all runs in order: `Retrieved.ranked`.

    Those are the first ``request.depth`` candidates, and those of which the query is a name.
    """
    fused = reciprocal_rank_fusion([*retrieved.by_words, *retrieved.by_meaning])
    scores: Mapping[int, float] = {}
    if request.rerank and models.reranker is not None and fused:
        best_ids = list(fused)[: request.candidates]
        passages = passages_of(reader, retrieved, best_ids)
        answer, problem = ask_model(models.reranker, question.prompt, passages, models.timeout_s)
        retrieved.problems += filter(None, [problem])
        scores = {
            document_id: score
            for document_id, score in zip(best_ids, answer, strict=False)
            if score is not None
        }
    if request.rerank and not scores and retrieved.nearest:
        measures, problem = measure_documents(
            reader, retrieved, list(fused), models, request.without
        )
        totals = dict(rank_by_evidence(fused, measures))
        best = next(iter(totals.values()))
        blends = {each: total / best if best else 1.0 for each, total in totals.items()}
        retrieved.problems += filter(None, [problem])

        def explain(document_id: int) -> Mapping[str, Any]:
            parts = [measure.explain(document_id) for measure in measures]
            return {"parts": parts, "sum": totals[document_id], "best": best}

        retrieved.ranked = _best(blends, request, question, retrieved, explain)
        retrieved.is_measured = True
        return
    _set_near(retrieved)
    blends = blend_scores(fused, scores)
    places = {document_id: place for place, document_id in enumerate(fused)}

    def explain_fusion(document_id: int) -> Mapping[str, Any]:
        weights = blend_weights(places[document_id]) if scores else (1.0, 0.0)
        explained = _explain_ranks(retrieved, document_id, fused[document_id])
        return explained | {
            "rerank": scores.get(document_id),
            "weights": dict(zip(("rrf", "rerank"), weights, strict=True)),
        }

    retrieved.ranked = _best(blends, request, question, retrieved, explain_fusion)


def _best(
    blends: Mapping[int, float],
    request: SearchRequest,
    question: Question,
    retrieved: Retrieved,
    explain: Explain,
) -> list[Candidate]:
    """The candidates of the best documents, and of those of which the query is a name."""
    candidates = []
    for place, (document_id, blend) in enumerate(blends.items()):
        if request.depth is None or place < request.depth or document_id in question.named:
            candidate = retrieved.candidates[document_id]
            candidate.blend = blend
            if request.explain:
                candidate.explanation = explain(document_id)
            candidates.append(candidate)
    return candidates


def _set_near(retrieved: Retrieved) -> None:
    """
    Say how near the candidates are to the question; how near to an expansion does not count.

    A document that a full run does not hold is taken to be as near as the run's last one.
    """
    if retrieved.embedded is None:
        return
    nearest = retrieved.nearest
    last = list(nearest.values())[-1] if len(nearest) >= RUN_DEPTH else None
    for document_id, candidate in retrieved.candidates.items():
        nearness = nearest.get(document_id, last)
        if nearness is not None:
            candidate.near = meaning.nearness.relative_nearness(nearness, retrieved.embedded.spec)


def _explain_ranks(retrieved: Retrieved, document_id: int, rrf: float) -> dict[str, Any]:
    """
    The parts of a fused score, as `--explain` shows them.

    rrf = sum of the contributions + bonus; blend = weights.rrf * rrf + weights.rerank * rerank,
    where a rerank of None counts as 0.
    """
    runs = [
        (run, run.ranks[document_id])
        for run in (*retrieved.by_words, *retrieved.by_meaning)
        if document_id in run.ranks
    ]
    first = bonus(min(rank for _, rank in runs))
    # 1 / the greatest possible sum, so that the parts add up to rrf.
    scale = rrf / (fsum(share(run, rank) for run, rank in runs) + first)
    return {
        "lists": [
            {
                "source": run.source,
                "query": run.text,
                "type": run.type,
                "rank": rank,
                "score": round(run.scores[document_id], 6),
                "weight": run.weight,
                "contribution": share(run, rank) * scale,
            }
            for run, rank in runs
        ],
        "bonus": first * scale,
        "rrf": rrf,
    }


# --- vsearch ------------------------------------------------------------------------------


def rank_by_nearness(
    reader: Reader,
    request: SearchRequest,
    embedded: QuestionVector,
    hits: Iterable[Candidate],
    expansions: Sequence[tuple[QuestionVector, Sequence[Candidate]]],
) -> list[Candidate]:
    """
    Merge the hits of a question and those of its expansions by nearness.

    A document's score for the question is `nearness_score`. Its score for an expansion is the mean
    of its scores for the question (weight 2) and for the expansion (weight 1). The best of these
    counts.

    Returns:
        Best first; ties by nearness, then by document id.
    """
    spec = embedded.spec
    candidates = {hit.document_id: hit for hit in hits}
    for hit in candidates.values():
        hit.blend = meaning.nearness.nearness_score(hit.nearness, spec)
    nearness = {hit.document_id: hit.nearness for hit in candidates.values()}
    raised: dict[int, tuple[str, float]] = {}
    total = ORIGINAL_WEIGHT + EXPANSION_WEIGHT
    for expansion, others in expansions:
        by_question = meaning.nearness.best_chunks_of(
            reader, embedded, [hit.document_id for hit in others]
        )
        for hit in others:
            document_id = hit.document_id
            candidate = by_question.get(document_id, hit)
            plain, score = (
                meaning.nearness.nearness_score(each.nearness, spec) for each in (candidate, hit)
            )
            mean = (ORIGINAL_WEIGHT * plain + EXPANSION_WEIGHT * score) / total
            candidate.blend = max(plain, mean)
            other = candidates.get(document_id)
            if other is None or candidate.blend > max(plain, other.blend):
                candidates[document_id] = candidate
                nearness[document_id] = candidate.nearness
                if mean > plain:
                    candidate.chunk_id, nearness[document_id] = hit.chunk_id, hit.nearness
                    raised[document_id] = expansion.text, score
    for document_id, candidate in candidates.items():
        # Near to the question: an expander makes texts that are near to some document anyway.
        candidate.near = meaning.nearness.relative_nearness(candidate.nearness, spec)
        if request.explain:
            candidate.explanation = _explain_nearness(candidate, spec, raised.get(document_id))
    return sorted(
        candidates.values(),
        key=lambda each: (-each.blend, -nearness[each.document_id], each.document_id),
    )


def _explain_nearness(
    candidate: Candidate, spec: ModelSpec, expansion: tuple[str, float] | None
) -> dict[str, Any]:
    """
    The parts of a blend by meaning, as `--explain` shows them.

    nearness = cosine - shared; own = (nearness - low) / (high - low), within 0 and 1;
    blend = own, or (2 * own + expansion) / 3 if an expansion raised it.
    """
    explained: dict[str, Any] = {
        "model": spec.name,
        "cosine": candidate.cosine,
        "shared": candidate.cosine - candidate.nearness,
        "nearness": candidate.nearness,
        "low": spec.cosine_low,
        "high": spec.cosine_high,
        "own": meaning.nearness.nearness_score(candidate.nearness, spec),
    }
    if expansion is not None:
        text, score = expansion
        explained["expansion"] = {"query": text, "score": score}
    return explained
