"""The blend of fused and reranked scores, and its documents as candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from qmd.search.candidates import Candidate
from qmd.search.fuse import Fused
from qmd.search.meaning.nearness import SemanticHit, relative_nearness
from qmd.search.plan import DEPTH
from qmd.search.rerank import Reranked, Reranking
from qmd.search.retrieve import Retrieved


def blend_weights(rank: int) -> tuple[float, float]:
    """Weights of fused and reranked score for a 0-based rank (source 003)."""
    if rank < 3:
        return 0.75, 0.25
    if rank < 10:
        return 0.60, 0.40
    return 0.40, 0.60


#: The fused score enters a blend as its eighth root. The score itself has so wide a range (a
#: document that is tenth in both lists has half of the first one's) that a reranker could hardly
#: move anything past the first three; the blend then lost half of the reranker's measured gain.
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


def blended_candidates(
    blended: Sequence[Blended],
    retrieved: Retrieved,
    reranking: Reranking,
    *,
    with_explanation: bool,
) -> list[Candidate]:
    lexical_hits, semantic_hits = retrieved.lexical_hits, retrieved.semantic_hits
    candidates = []
    for each in blended:
        document = each.fused.document
        lexical, semantic = lexical_hits.get(document), semantic_hits.get(document)
        reranked = reranking.by_document.get(document)
        candidates.append(
            Candidate(
                document,
                each.score,
                lexical.match if lexical else "semantic" if semantic else "relaxed",
                lexical.words if lexical else (),
                _nearness(semantic, retrieved, document in reranking.unembedded_ids),
                semantic.chunk if semantic else None,
                _explain(each, reranked) if with_explanation else None,
            )
        )
    return candidates


def _nearness(hit: SemanticHit | None, retrieved: Retrieved, is_unembedded: bool) -> float | None:
    """That of the hit; a document behind the end of a full list is as near as the last one."""
    if not retrieved.by_meaning:
        return None
    nearest = retrieved.by_meaning[0]
    if hit is None:
        if is_unembedded or len(nearest.hits) < DEPTH:
            return None
        hit = nearest.hits[-1]
    return relative_nearness(hit.nearness, nearest.spec)


def _explain(blended: Blended, reranked: Reranked | None) -> dict[str, Any]:
    """
    rrf = all contributions + bonus, scaled to it;
    score = blend.rrf * rrf + blend.rerank * (rerank or 0).
    """
    fused = blended.fused
    scale = blended.rrf / (fsum(part.contribution for part in fused.lists) + fused.bonus)
    explained: dict[str, Any] = {
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
        "rrf": blended.rrf,
        "rerank": blended.reranked,
        "blend": {"rrf": blended.by_rank, "rerank": blended.by_model},
        "score": blended.score,
    }
    if reranked is not None and reranked.parts is not None:
        explained["evidence"] = dict(reranked.parts)
    return explained
