"""
Reranking of the best candidates: by the scores of retrieval, or by a model that the user chose.

Reranking by scores needs no model. Fusion uses only places in lists; this step looks at how far
apart the scores are: each list's scores are standardised over its first hundred and added. So a
document far ahead in one list beats one that is middling in both. It costs one more read of the
candidates' vectors, for how near each is as a whole.
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

#: Weights of the words, of the nearest chunk, and of the document as a whole.
WORDS, NEAREST, WHOLE = 1.25, 1.0, 0.5
#: The list over which scores are standardised.
DEPTH = 100
#: No value counts as farther out than this: the one document of a hundred that holds a word of
#: the question would be ten deviations away. (4 costs .013 mean MRR@10, no bound gains nothing.)
MOST = 6.0
#: The sum, from the last candidate (0) to the best (1), is raised to this power.
POWER = 3
#: As much of a passage is shown to a reranker.
PASSAGE_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Reranked:
    """``score`` 0..1; ``parts`` are the summands of reranking by scores, for explanations."""

    score: float
    parts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reranking:
    """
    The result for the best candidates, by document id; empty where nothing could rerank them.

    Attributes:
        unembedded_ids: Candidates whose vectors are still to be made.
        problem: A sentence, where the model failed.
    """

    by_document: Mapping[int, Reranked] = field(default_factory=dict)
    unembedded_ids: frozenset[int] = frozenset()
    problem: str | None = None

    @property
    def scores(self) -> dict[int, float]:
        return {document_id: entry.score for document_id, entry in self.by_document.items()}


def rerank(
    reader: Reader,
    prompt: str,
    retrieved: Retrieved,
    best: Sequence[Fused],
    models: SearchModels,
) -> Reranking:
    """The best by the model, if there is one; by scores where there is none, or where it fails."""
    if not best:
        return Reranking()
    problem = None
    candidate_ids = [each.document_id for each in best]
    if models.reranker is not None:
        chunks = {hit.document_id: hit.chunk_id for hit in retrieved.semantic_hits.values()}
        passages = list(_passages(reader, candidate_ids, chunks))
        scores, problem = _ask_model(models.reranker, prompt, passages, models.timeout_s)
        if scores:
            return Reranking(dict(zip(candidate_ids, map(Reranked, scores), strict=True)))
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
    Rerank by the scores that retrieval gave.

    Args:
        candidates: Document ids.
        words: bm25 of the documents that full text ranks.
        nearest: Nearness of the best chunk of the documents that the vectors rank.
        whole: Mean nearness of the candidates' chunks.
        document_count: How many documents the index has.

    Returns:
        Document id → ((sum - least sum) / (greatest - least)) ** `POWER` over the candidates,
        where sum = `WORDS` · words + `NEAREST` · nearest + `WHOLE` · whole, each standardised.
        A document that a list lacks counts as the last one of the list; one that has no vector
        yet (neither list has it) as the average of those near: not to know is not to be far.
        Nothing, if there is no vector at all: then only the order by words is left.
    """
    if not nearest or not candidates:
        return {}
    # A document without any of the words has 0, so a short list goes on with zeros.
    by_words = _Standardised(words, zeros=document_count - len(words)) if words else None
    by_nearest = _Standardised(nearest)
    by_whole = _Standardised({each: whole[each] for each in candidates if each in whole})

    def parts(document_id: int) -> dict[str, float]:
        has_vectors = document_id in whole or document_id in nearest
        return {
            "words": WORDS * by_words(document_id) if by_words else 0.0,
            "nearest": NEAREST * by_nearest(document_id) if has_vectors else 0.0,
            "whole": WHOLE * by_whole(document_id) if has_vectors else 0.0,
        }

    return _scale({document_id: parts(document_id) for document_id in candidates})


def _scale(parts: Mapping[int, Mapping[str, float]]) -> dict[int, Reranked]:
    """The sums of the parts, from the least (0) to the greatest (1), to the power of `POWER`."""
    sums = {document_id: fsum(each.values()) for document_id, each in parts.items()}
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
    """Document id → its value in standard deviations from the mean of the first `DEPTH`."""

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
        # Rounding alone makes 1e-8 of equal values.
        deviations = (value - self._mean) / self._deviation if self._deviation > 1e-6 else 0.0
        return min(deviations, MOST)


def _ask_model(
    reranker: Reranker, prompt: str, passages: Sequence[str], timeout_s: float
) -> tuple[list[float], str | None]:
    """A score 0..1 for each passage; or none, and a sentence on what went wrong."""
    try:
        scores = reranker.rerank(prompt, passages, timeout_s=timeout_s)
    except InferenceError as error:
        return [], f"Not reranked: {error}"
    if len(scores) != len(passages):
        return [], f"Not reranked: {len(scores)} scores came for {len(passages)} passages."
    return [min(1.0, max(0.0, float(score))) for score in scores], None


def _passages(
    reader: Reader, document_ids: Sequence[int], chunks: Mapping[int, int]
) -> Iterable[str]:
    """For each document its best chunk (``chunks``: document id → chunk id), or its beginning."""
    for page in reader.documents.full(document_ids):
        chunk = chunks.get(page.info.id)
        spans = reader.vectors.chunk_spans([chunk]) if chunk is not None else {}
        start, end, _ = spans[chunk] if chunk is not None else (page.body_start, None, 0)
        yield f"{page.info.title}\n{page.text[start:end]}"[:PASSAGE_CHARS]
