"""
BM25 with constants that suit questions, computed from the term frequencies of FTS5.

The BM25 of FTS5 has two fixed properties that do not suit questions. Its idf is 0 for a word in
more than half of all documents and small for a word in a third, so that of "which switch makes it
pick one" only the rare words count. And with its k1 of 1.2 the third occurrence of a word adds
hardly anything. So FTS5 makes a first ranking, which is fast, and the best of it are ranked again
here. On five sets of known-item questions the mean MRR@10 rose from .560 to .590; on nine
collections with judgments nDCG@10 did not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, log1p
from typing import TYPE_CHECKING, NamedTuple

from qmd.search.candidates import Candidate
from qmd.search.words.expressions import phrase
from qmd.store.full_text import BM25_K1
from qmd.values import Match

if TYPE_CHECKING:
    from qmd.store import Reader

#: This many of the first ranking are ranked again, whatever the limit, so that a longer list of
#: hits begins like a shorter one.
POOL = 100
#: The constant k1; with a greater k1, further occurrences of a word add more. FTS5 has 1.2.
K1 = 2.0


class Word(NamedTuple):
    """
    A word of the query.

    Attributes:
        documents: How many documents hold it.
        idf: Its weight, above 0.
    """

    documents: int
    idf: float


def idf(documents: int, total: int) -> float:
    """
    The weight of a word that ``documents`` of ``total`` documents hold.

    The weight is above 0 even for a word that all documents hold.
    """
    return log1p((max(total - documents, 0) + 0.5) / (documents + 0.5))


def rank(
    reader: Reader,
    rows: Sequence[tuple[int, float]],
    words: Mapping[str, Word],
    document_count: int,
    match: Match,
) -> list[Candidate]:
    """
    Rank the first `POOL` rows again; the others follow as they were.

    The scores of the others are lowered to that of the last ranked row where they are above it.

    Args:
        rows: Document ids with FTS5's bm25, best first.
        words: The words that count, by their text.
        document_count: How many documents the index has.
        match: How they match.

    Returns:
        Best first; ties by document id.
    """
    pool = [document_id for document_id, _ in rows[:POOL]]
    parts: dict[int, dict[str, float]] = {document_id: {} for document_id in pool}
    for word, (documents, weight) in words.items():
        expression = phrase(word) if documents else None
        if expression is None:
            continue
        frequencies = reader.full_text.frequencies(expression, pool, documents, document_count)
        for document_id, frequency in frequencies.items():
            # f / (f + 1) with our K1 in place of FTS5's.
            score = weight * (K1 + 1) * frequency / (frequency + K1 / BM25_K1)
            parts[document_id][word] = score
    ranked = [
        Candidate(document_id, match, fsum(by_word.values()), by_word)
        for document_id, by_word in parts.items()
    ]
    ranked.sort(key=lambda candidate: (-candidate.bm25, candidate.document_id))
    last = ranked[-1].bm25 if ranked else 0.0
    for document_id, score in rows[POOL:]:
        last = min(last, score)
        ranked.append(Candidate(document_id, match, last))
    return ranked
