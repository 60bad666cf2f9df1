"""Reranks the best fused documents by the model that the user has named, and mixes both scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.search.fuse import Fused

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker


def ask_model(
    reranker: Reranker, prompt: str, passages: Sequence[str], timeout_s: float
) -> tuple[Sequence[float | None], str | None]:
    """
    A score (0..1) for each passage, None for those that the model did not reach in time.

    The second value is a sentence that says what is missing. If the model failed, there are no
    scores.

    Args:
        prompt: The query as the model reads it.
    """
    try:
        scores = reranker.rerank(prompt, passages, timeout_s=timeout_s)
    except InferenceError as error:
        return [], f"Not reranked: {error}"
    missing = sum(score is None for score in scores)
    if not missing:
        return scores, None
    return scores, (
        f"Reranked {len(passages) - missing} of {len(passages)} candidates: a query waits"
        f" {timeout_s:g} s for models (model_budget)."
    )


# --- the mix ------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Blended:
    """
    A document with its blended score.

    Attributes:
        reranked: The model's score, 0..1; None if the document was not reranked.
        by_rank, by_model: The weights of ``fused.rrf`` and ``reranked``.
        score: ``by_rank * fused.rrf + by_model * reranked``, 0..1; None counts as 0.
    """

    fused: Fused
    reranked: float | None
    by_rank: float
    by_model: float
    score: float


def blend_scores(fused: Sequence[Fused], reranked: Mapping[int, float]) -> list[Blended]:
    """
    Mix fused scores and a model's scores by rank, and sort by the result.

    Args:
        fused: Best first.
        reranked: Document id → score, 0..1. If it is empty, the fused scores stay as they are.
            A document that is missing counts as 0.

    Returns:
        Best first, ties by document id.
    """
    if not reranked:
        return [Blended(entry, None, 1.0, 0.0, entry.rrf) for entry in fused]
    mixed = []
    for rank, entry in enumerate(fused):
        value = reranked.get(entry.document_id)
        by_rank, by_model = blend_weights(rank)
        score = by_rank * entry.rrf + by_model * (value or 0.0)
        mixed.append(Blended(entry, value, by_rank, by_model, score))
    return sorted(mixed, key=lambda entry: (-entry.score, entry.fused.document_id))
