"""The end of reranking in `query`: mix fused and reranked scores, and make candidates of them."""

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


#: The fused score enters the blend as its eighth root. The plain score has so wide a range (the
#: tenth document of both runs has half the score of the first) that a reranker could hardly move
#: a document past the first three; half of the reranker's measured gain was lost.
ROOT = 8


@dataclass(frozen=True, slots=True)
class Blended:
    """
    A document with its blended score.

    Attributes:
        rrf: The fused score as it entered the blend.
        reranked: The reranked score, 0..1; None if the document was not reranked.
        by_rank, by_model: The weights of ``rrf`` and ``reranked``.
        score: ``by_rank * rrf + by_model * reranked``, 0..1; None counts as 0.
    """

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
        reranked: Document id → score, 0..1. If it is empty, the fused scores stay as they are.
            A document that is missing counts as 0.

    Returns:
        Best first, ties by document id.
    """
    if not reranked:
        return [Blended(entry, entry.rrf, None, 1.0, 0.0, entry.rrf) for entry in fused]
    mixed = []
    for rank, entry in enumerate(fused):
        value = reranked.get(entry.document_id)
        by_rank, by_model = blend_weights(rank)
        rrf = entry.rrf ** (1 / ROOT)
        score = by_rank * rrf + by_model * (value or 0.0)
        mixed.append(Blended(entry, rrf, value, by_rank, by_model, score))
    return sorted(mixed, key=lambda entry: (-entry.score, entry.fused.document_id))


def blended_candidates(
    blended: Sequence[Blended],
    retrieved: Retrieved,
    reranking: Reranking,
    *,
    with_explanation: bool,
) -> list[Candidate]:
    """The candidates of `query`, in the order of ``blended``."""
    lexical_hits, semantic_hits = retrieved.lexical_hits, retrieved.semantic_hits
    candidates = []
    for entry in blended:
        document_id = entry.fused.document_id
        lexical, semantic = lexical_hits.get(document_id), semantic_hits.get(document_id)
        reranked = reranking.by_document.get(document_id)
        candidates.append(
            Candidate(
                document_id,
                entry.score,
                lexical.match if lexical else "semantic" if semantic else "relaxed",
                lexical.words if lexical else (),
                _nearness(semantic, retrieved, document_id in reranking.unembedded_ids),
                semantic.chunk_id if semantic else None,
                _explain(entry, reranked) if with_explanation else None,
            )
        )
    return candidates


def _nearness(hit: SemanticHit | None, retrieved: Retrieved, is_unembedded: bool) -> float | None:
    """
    The relative nearness of a document; None if it is not known.

    A document that a full run does not hold is taken to be as near as the run's last one.
    """
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
    The parts of a blended score, as `--explain` shows them.

    The contributions and the bonus are scaled so that they add up to rrf;
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
