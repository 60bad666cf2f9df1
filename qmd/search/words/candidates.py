"""Make candidates of the hits of full text, with the parts of their blends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.search.candidates import Candidate
from qmd.search.query.terms import LEAD
from qmd.search.words.retrieval import BASE, HALF, LexicalHit
from qmd.search.words.weights import QueryWords


def lexical_candidates(
    hits: Sequence[LexicalHit], words: QueryWords, *, with_explanation: bool
) -> list[Candidate]:
    """The candidates of `search`, in the order of ``hits``."""
    return [
        Candidate(
            hit.document_id,
            hit.score,
            hit.match,
            hit.words,
            explanation=_explain(hit, words) if with_explanation else None,
        )
        for hit in hits
    ]


def _explain(hit: LexicalHit, words: QueryWords) -> dict[str, Any]:
    """
    The parts of a blend by words, as `--explain` shows them.

    bm25 is the sum of the words' scores, or that of FTS5 if the query has phrases, fields or signs;
    blend = base + 0.5 * bm25 / (bm25 + half).
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
    }
