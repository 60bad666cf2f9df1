"""What a score is made of, for `explain`; the parts add up to the score."""

from __future__ import annotations

from math import fsum
from typing import Any

from qmd.search.fuse import Blended, Nearest
from qmd.search.query.terms import LEAD
from qmd.search.rerank import Reranked
from qmd.search.words.retrieval import BASE, HALF, LexicalHit
from qmd.search.words.weights import QueryWords
from qmd.values import ModelSpec


def explain_words(hit: LexicalHit, words: QueryWords) -> dict[str, Any]:
    """
    bm25 = the sum of the words' scores (FTS5's own, where the query has phrases, fields or
    signs); score = base + 0.5 * bm25 / (bm25 + half).
    """
    return {
        "terms": [
            term.text if len(term.text) <= LEAD else f"{term.lead}…" for term in words.query.terms
        ],
        "words": [
            {
                "word": word,
                "documents": weighed.documents,
                "idf": weighed.idf,
                "score": hit.words[word],
            }
            for word, weighed in words.weights.items()
            if word in hit.words
        ],
        "bm25": hit.bm25,
        "match": hit.match,
        "base": BASE[hit.match],
        "half": HALF,
        "score": hit.score,
    }


def explain_nearness(nearest: Nearest, spec: ModelSpec) -> dict[str, Any]:
    """
    nearness = cosine - shared; own = (nearness - low) / (high - low), within 0 and 1;
    score = own, or (2 * own + expansion) / 3.
    """
    original = nearest.original
    explained: dict[str, Any] = {
        "model": spec.name,
        "cosine": original.cosine,
        "shared": original.cosine - original.nearness,
        "nearness": original.nearness,
        "low": spec.cosine_low,
        "high": spec.cosine_high,
        "own": nearest.original_score,
        "score": nearest.score,
    }
    if nearest.expansion is not None:
        text, score = nearest.expansion
        explained["expansion"] = {"query": text, "score": score}
    return explained


def explain_blend(blended: Blended, reranked: Reranked | None) -> dict[str, Any]:
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
