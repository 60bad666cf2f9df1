"""Ranked candidates: the documents that one of the three searches has scored, best first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qmd.search.fuse import Blended, Nearest
from qmd.search.meaning.nearness import SemanticHit, relative_nearness
from qmd.search.parse import DEPTH
from qmd.search.present.explain import explain_blend, explain_nearness, explain_words
from qmd.search.rerank import Reranking
from qmd.search.retrieve import Retrieved
from qmd.search.words.retrieval import LexicalHit
from qmd.search.words.weights import QueryWords
from qmd.values import Match, ModelSpec


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A scored document that is not read yet.

    Attributes:
        words: The words of the query that full text found in it, if any.
        nearness: See `relative_nearness`; None where it is not known.
        chunk: The id of its chunk nearest to the question.
        explanation: The parts of the score.
    """

    document: int
    score: float
    match: Match
    words: Collection[str] = ()
    nearness: float | None = None
    chunk: int | None = None
    explanation: Mapping[str, Any] | None = None


def lexical_candidates(
    hits: Sequence[LexicalHit], words: QueryWords, *, with_explanation: bool
) -> list[Candidate]:
    return [
        Candidate(
            hit.document,
            hit.score,
            hit.match,
            hit.words,
            explanation=explain_words(hit, words) if with_explanation else None,
        )
        for hit in hits
    ]


def semantic_candidates(
    nearest: Sequence[Nearest], spec: ModelSpec, *, with_explanation: bool
) -> list[Candidate]:
    return [
        Candidate(
            each.hit.document,
            each.score,
            "semantic",
            nearness=relative_nearness(each.hit.nearness, spec),
            chunk=each.hit.chunk,
            explanation=explain_nearness(each, spec) if with_explanation else None,
        )
        for each in nearest
    ]


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
                explain_blend(each, reranked) if with_explanation else None,
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
