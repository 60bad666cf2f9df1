"""
Rerank the best fused documents, by a model if the user has chosen one, else by their scores.

Reranking by scores needs no model. Fusion has used only the ranks; this step looks at how far apart
the scores are. The scores of each run are standardised over its first hundred, weighted and added,
so that a document far ahead in one run beats one that is middling in both. It reads the vectors of
the candidates once more, to see how near each document is as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError
from qmd.search.fuse import Fused
from qmd.search.meaning.nearness import mean_nearness
from qmd.search.retrieve import Retrieved

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker
    from qmd.search.models import SearchModels
    from qmd.store import Reader

#: The weights of bm25, of the nearest chunk, and of the whole document.
WORDS, NEAREST, WHOLE = 1.25, 1.0, 0.5
#: Scores are standardised over this many documents of a run.
DEPTH = 100
#: The greatest standardised value, in standard deviations. Without a bound, the only document of a
#: hundred that holds a word of the question would be at 10. (A bound of 4 costs .013 mean MRR@10.)
MOST = 6.0
#: The sum, from the last candidate (0) to the best (1), is raised to this power.
POWER = 3
#: A reranker reads this many characters of a passage.
PASSAGE_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Reranked:
    """
    Attributes:
        score: 0..1.
        parts: The summands of the score, for explanations; None if a model gave the score.
    """

    score: float
    parts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reranking:
    """
    The reranked scores of the best fused documents.

    Attributes:
        by_document: Document id → score; empty if nothing could rerank them.
        unembedded_ids: The documents that have no vectors yet.
        problem: A sentence that says how the model failed; None if it did not.
    """

    by_document: Mapping[int, Reranked] = field(default_factory=dict)
    unembedded_ids: frozenset[int] = frozenset()
    problem: str | None = None

    @property
    def scores(self) -> dict[int, float]:
        """Document id → score, 0..1."""
        return {document_id: entry.score for document_id, entry in self.by_document.items()}


def rerank(
    reader: Reader,
    prompt: str,
    retrieved: Retrieved,
    best: Sequence[Fused],
    models: SearchModels,
) -> Reranking:
    """
    Rerank documents by the model, if there is one; by their scores if not, or if the model fails.

    Args:
        prompt: The query as the model reads it.
        best: The best fused documents, best first.
    """
    if not best:
        return Reranking()
    problem = None
    candidate_ids = [fused.document_id for fused in best]
    if models.reranker is not None:
        chunks = {hit.document_id: hit.chunk_id for hit in retrieved.semantic_hits.values()}
        passages = list(_passages(reader, candidate_ids, chunks))
        scores, problem = _ask_model(models.reranker, prompt, passages, models.timeout_s)
        if scores:
            by_model = {
                document_id: Reranked(score)
                for document_id, score in zip(candidate_ids, scores, strict=True)
                if score is not None
            }
            return Reranking(by_model, problem=problem)
    if not retrieved.by_meaning:
        return Reranking(problem=problem)
    nearest = retrieved.by_meaning[0]
    whole = mean_nearness(reader, nearest.model, nearest.question, candidate_ids)
    by_scores = rerank_by_scores(
        candidate_ids,
        {document_id: hit.bm25 for document_id, hit in retrieved.lexical_hits.items()},
        {hit.document_id: hit.nearness for hit in nearest.hits},
        whole,
        retrieved.words.document_count,
    )
    return Reranking(by_scores, frozenset(candidate_ids) - whole.keys(), problem)


def rerank_by_scores(
    candidates: Sequence[int],
    words: Mapping[int, float],
    nearest: Mapping[int, float],
    whole: Mapping[int, float],
    document_count: int,
) -> dict[int, Reranked]:
    """
    Rerank documents by the scores of retrieval.

    Args:
        candidates: The ids of the documents to rerank.
        words: Document id → bm25, for the hits of full text.
        nearest: Document id → nearness of its nearest chunk, for the hits of the vectors.
        whole: Document id → mean nearness of its chunks, for the candidates.
        document_count: The number of documents in the index.

    Returns:
        Document id → ((sum - least sum) / (greatest sum - least sum)) ** `POWER`, 0..1, where
        sum = `WORDS` · words + `NEAREST` · nearest + `WHOLE` · whole, each standardised.
        A document that is missing in a run counts as the run's last one. A document without
        vectors counts as average in nearness, because it may be near. The result is empty if no
        document has vectors.
    """
    if not nearest or not candidates:
        return {}
    # A document without any of the words has a bm25 of 0, so a short run is continued with zeros.
    by_words = _Standardised(words, zeros=document_count - len(words)) if words else None
    by_nearest = _Standardised(nearest)
    by_whole = _Standardised(
        {document_id: whole[document_id] for document_id in candidates if document_id in whole}
    )

    def parts(document_id: int) -> dict[str, float]:
        has_vectors = document_id in whole or document_id in nearest
        return {
            "words": WORDS * by_words(document_id) if by_words else 0.0,
            "nearest": NEAREST * by_nearest(document_id) if has_vectors else 0.0,
            "whole": WHOLE * by_whole(document_id) if has_vectors else 0.0,
        }

    return _scale({document_id: parts(document_id) for document_id in candidates})


def _scale(parts: Mapping[int, Mapping[str, float]]) -> dict[int, Reranked]:
    """Document id → the sum of its parts, scaled to 0..1 and raised to the power of `POWER`."""
    sums = {document_id: fsum(summands.values()) for document_id, summands in parts.items()}
    least, greatest = min(sums.values()), max(sums.values())
    reach = greatest - least
    return {
        document_id: Reranked(
            ((total - least) / reach) ** POWER if reach > 0 else 1.0,
            {
                **parts[document_id],
                "sum": total,
                "least": least,
                "greatest": greatest,
                "power": POWER,
            },
        )
        for document_id, total in sums.items()
    }


class _Standardised:
    """
    Called with a document id: its value in standard deviations from the mean of the best `DEPTH`.

    ``zeros``: how many documents with the value 0 the values leave out.
    """

    def __init__(self, values: Mapping[int, float], zeros: int = 0) -> None:
        top = sorted(values.values(), reverse=True)[:DEPTH]
        top += [0.0] * min(zeros, DEPTH - len(top))
        self._values = values
        self._last = top[-1] if top else 0.0
        self._mean = fsum(top) / len(top) if top else 0.0
        spread = fsum((value - self._mean) ** 2 for value in top)
        self._deviation = sqrt(spread / len(top)) if top else 0.0

    def __call__(self, document_id: int) -> float:
        value = max(self._values.get(document_id, self._last), self._last)
        # Equal values have a deviation of up to 1e-8, from rounding.
        deviations = (value - self._mean) / self._deviation if self._deviation > 1e-6 else 0.0
        return min(deviations, MOST)


def _ask_model(
    reranker: Reranker, prompt: str, passages: Sequence[str], timeout_s: float
) -> tuple[Sequence[float | None], str | None]:
    """
    A score (0..1) for each passage, None for those that the model did not reach in time.

    The second value is a sentence that says what is missing. If the model failed, there are no
    scores.
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


def _passages(
    reader: Reader, document_ids: Sequence[int], chunks: Mapping[int, int]
) -> Iterable[str]:
    """
    For each document a passage for the reranker: its title, then its best chunk or its beginning.

    ``chunks``: document id → chunk id.
    """
    for page in reader.documents.full(document_ids):
        chunk = chunks.get(page.info.id)
        spans = reader.vectors.chunk_spans([chunk]) if chunk is not None else {}
        start, end, _ = spans[chunk] if chunk is not None else (page.body_start, None, 0)
        yield f"{page.info.title}\n{page.text[start:end]}"[:PASSAGE_CHARS]
