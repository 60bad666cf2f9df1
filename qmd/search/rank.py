"""
The third step of `query`: put the documents of all runs in order.

There are three orders. Where there are vectors, the evidence decides (`qmd.search.evidence`). If
the user has named a reranker, its scores and the fused ranks are mixed (`qmd.search.rerank`).
Without vectors, and with `--no-rerank`, the fused ranks alone decide (`qmd.search.fuse`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd.search.candidates import Candidate
from qmd.search.evidence import explain_evidence
from qmd.search.fuse import reciprocal_rank_fusion
from qmd.search.meaning.nearness import SemanticHit, relative_nearness
from qmd.search.measure import EvidenceOrder, collect_evidence
from qmd.search.passages import passages_of
from qmd.search.plan import RUN_DEPTH, Plan
from qmd.search.rerank import Blended, ask_model, blend_scores
from qmd.search.retrieve import Retrieved
from qmd.search.words.retrieval import LexicalHit
from qmd.values import SearchRequest

if TYPE_CHECKING:
    from qmd.search.models import SearchModels
    from qmd.store import Reader
    from qmd.store.sql.documents import NameKind


@dataclass(frozen=True, slots=True)
class Ranking:
    """
    Candidates in their order.

    Attributes:
        candidates: Best first.
        is_measured: Whether the blends say how far apart candidates are; not if ranks decide.
        problem: What could not be done, as a sentence; None if all was.
    """

    candidates: list[Candidate]
    is_measured: bool
    problem: str | None = None


def rank(
    reader: Reader, request: SearchRequest, plan: Plan, retrieved: Retrieved, models: SearchModels
) -> Ranking:
    """
    Put the documents of all runs in order.

    Returns:
        The first ``request.depth`` candidates, and those of which the query is a name.
    """
    fused = reciprocal_rank_fusion(retrieved.runs)
    scores: Mapping[int, float] = {}
    problem = None
    if request.rerank and models.reranker is not None and fused:
        best_ids = [entry.document_id for entry in fused[: request.candidates]]
        passages = passages_of(reader, retrieved, best_ids)
        answer, problem = ask_model(models.reranker, plan.prompt, passages, models.timeout_s)
        scores = {
            document_id: score
            for document_id, score in zip(best_ids, answer, strict=False)
            if score is not None
        }
    if request.rerank and not scores and retrieved.has_nearest:
        document_ids = [entry.document_id for entry in fused]
        evidence = collect_evidence(reader, retrieved, document_ids, models, request.without)
        problems = filter(None, (problem, evidence.problem))
        candidates = _by_evidence(evidence, retrieved, request, plan.named)
        return Ranking(candidates, True, " ".join(problems) or None)
    blended = blend_scores(fused, scores)
    return Ranking(_by_fusion(blended, retrieved, request, plan.named), False, problem)


def _by_evidence(
    evidence: EvidenceOrder,
    retrieved: Retrieved,
    request: SearchRequest,
    named: Mapping[int, NameKind],
) -> list[Candidate]:
    """The candidates of the best documents by evidence; their blend is a share of the evidence."""
    hits = _Hits.from_runs(retrieved)
    # A document whose vectors were not looked at is taken to be as near as the run's last one.
    last = retrieved.by_meaning[0].hits[-1]
    candidates = []
    for rank, entry in enumerate(evidence.ranked):
        if not _is_candidate(rank, entry.document_id, request, named):
            continue
        chunk = evidence.nearest_chunks.get(entry.document_id)
        is_unembedded = entry.document_id in evidence.unembedded_ids
        near = None if is_unembedded else _nearness(chunk or last, retrieved)
        explanation = explain_evidence(entry, evidence.measures) if request.explain else None
        candidates.append(hits.candidate(entry.document_id, entry.blend, chunk, near, explanation))
    return candidates


def _is_candidate(
    rank: int, document_id: int, request: SearchRequest, named: Mapping[int, NameKind]
) -> bool:
    """Whether the document of a rank, from 0, is a candidate: the first are, and named ones."""
    return request.depth is None or rank < request.depth or document_id in named


def _by_fusion(
    blended: Sequence[Blended],
    retrieved: Retrieved,
    request: SearchRequest,
    named: Mapping[int, NameKind],
) -> list[Candidate]:
    """The candidates of the best fused and perhaps reranked documents."""
    hits = _Hits.from_runs(retrieved)
    # A document that a full run does not hold is taken to be as near as the run's last one.
    last = None
    if retrieved.by_meaning and len(retrieved.by_meaning[0].hits) >= RUN_DEPTH:
        last = retrieved.by_meaning[0].hits[-1]
    # How near a document is to an expansion does not count.
    original_hits = retrieved.by_meaning[0].hits if retrieved.by_meaning else ()
    by_question = {hit.document_id: hit for hit in original_hits}
    candidates = []
    for rank, entry in enumerate(blended):
        if not _is_candidate(rank, entry.fused.document_id, request, named):
            continue
        chunk = hits.semantic.get(entry.fused.document_id)
        near = _nearness(by_question.get(entry.fused.document_id, last), retrieved)
        explanation = _explain_fusion(entry) if request.explain else None
        candidates.append(
            hits.candidate(entry.fused.document_id, entry.score, chunk, near, explanation)
        )
    return candidates


class _Hits(NamedTuple):
    """The hits of both retrievers, by document id; see `Retrieved`."""

    lexical: Mapping[int, LexicalHit]
    semantic: Mapping[int, SemanticHit]

    @classmethod
    def from_runs(cls, retrieved: Retrieved) -> _Hits:
        return cls(retrieved.lexical_hits, retrieved.semantic_hits)

    def candidate(
        self,
        document_id: int,
        blend: float,
        chunk: SemanticHit | None,
        nearness: float | None,
        explanation: Mapping[str, Any] | None,
    ) -> Candidate:
        """
        The candidate of a document.

        Args:
            chunk: The document's chunk nearest to the question; None if it is not known.
            nearness: As in `Candidate`.
        """
        lexical = self.lexical.get(document_id)
        return Candidate(
            document_id,
            blend,
            lexical.match if lexical else "semantic" if document_id in self.semantic else "relaxed",
            lexical.words if lexical else (),
            nearness,
            chunk.chunk_id if chunk else None,
            explanation,
        )


def _nearness(hit: SemanticHit | None, retrieved: Retrieved) -> float | None:
    """The relative nearness of a chunk; None without a chunk or a model to relate it to."""
    if hit is None or not retrieved.by_meaning:
        return None
    return relative_nearness(hit.nearness, retrieved.by_meaning[0].spec)


def _explain_fusion(blended: Blended) -> dict[str, Any]:
    """
    The parts of a fused and perhaps reranked score, as `--explain` shows them.

    rrf = sum of the contributions + bonus; blend = weights.rrf * rrf + weights.rerank * rerank,
    where a rerank of None counts as 0.
    """
    fused = blended.fused
    # 1 / the greatest possible sum, so that the parts add up to rrf.
    scale = fused.rrf / (fsum(part.contribution for part in fused.lists) + fused.bonus)
    return {
        "lists": [
            {
                "source": part.source,
                "query": part.query,
                "type": part.type,
                "rank": part.rank,
                "score": round(part.score, 6),
                "weight": part.weight,
                "contribution": part.contribution * scale,
            }
            for part in fused.lists
        ],
        "bonus": fused.bonus * scale,
        "rrf": fused.rrf,
        "rerank": blended.reranked,
        "weights": {"rrf": blended.by_rank, "rerank": blended.by_model},
    }
