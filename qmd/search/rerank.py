"""
What the best candidates are reranked by: the embedded reranker, or one that the user chose.

The embedded one needs no model. Fusion knows only places in lists; it looks at how far apart
the scores are: each list's scores are standardised over its first hundred and added. So a
document far ahead in one list beats one that is middling in both. It costs one more read of the
candidates' vectors, for how near each is as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker
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
    """``score`` 0..1; ``parts`` is what the embedded reranker added up, for explanations."""

    score: float
    parts: Mapping[str, Any] | None = None


def embedded(
    candidates: Sequence[int],
    words: Mapping[int, float],
    nearest: Mapping[int, float],
    whole: Mapping[int, float],
    total: int,
) -> dict[int, Reranked]:
    """
    Rerank by the scores that retrieval gave.

    Args:
        candidates: Document ids.
        words: bm25 of the documents that full text found.
        nearest: Nearness of the best chunk of those that the vectors found.
        whole: Mean nearness of the candidates' chunks.
        total: How many documents there are.

    Returns:
        Document id → ((sum - least sum) / (greatest - least)) ** `POWER` over the candidates,
        where sum = `WORDS` · words + `NEAREST` · nearest + `WHOLE` · whole, each standardised.
        A document that a list does not hold counts as its last one; one that has no vector yet
        (neither list holds it) as the average of those near: not to know is not to be far.
        Nothing, if there is no vector at all: the order of the words is all that is known.
    """
    if not nearest or not candidates:
        return {}
    # What holds none of the words has 0, so a list shorter than it might be goes on with zeros.
    by_words = _Standardised(words, zeros=total - len(words)) if words else None
    by_nearest = _Standardised(nearest)
    by_whole = _Standardised({number: whole[number] for number in candidates if number in whole})
    sums, parts = {}, {}
    for number in candidates:
        has_vectors = number in whole or number in nearest
        some = {
            "words": WORDS * by_words(number) if by_words else 0.0,
            "nearest": NEAREST * by_nearest(number) if has_vectors else 0.0,
            "whole": WHOLE * by_whole(number) if has_vectors else 0.0,
        }
        parts[number], sums[number] = some, fsum(some.values())
    least, greatest = min(sums.values()), max(sums.values())
    reach = greatest - least
    return {
        number: Reranked(
            ((total - least) / reach) ** POWER if reach > 0 else 1.0,
            {**parts[number], "sum": total, "least": least, "greatest": greatest, "power": POWER},
        )
        for number, total in sums.items()
    }


class _Standardised:
    """Number → its value in standard deviations from the mean of the first `DEPTH`."""

    def __init__(self, values: Mapping[int, float], zeros: int = 0) -> None:
        top = sorted(values.values(), reverse=True)[:DEPTH]
        top += [0.0] * min(zeros, DEPTH - len(top))
        self._values = values
        self._last = top[-1] if top else 0.0
        self._mean = fsum(top) / len(top) if top else 0.0
        spread = fsum((value - self._mean) ** 2 for value in top)
        self._deviation = sqrt(spread / len(top)) if top else 0.0

    def __call__(self, number: int) -> float:
        value = max(self._values.get(number, self._last), self._last)
        # Rounding alone makes 1e-8 of equal values.
        place = (value - self._mean) / self._deviation if self._deviation > 1e-6 else 0.0
        return min(place, MOST)


def by_model(
    reader: Reader,
    reranker: Reranker,
    timeout_s: float,
    text: str,
    candidates: Sequence[int],
    chunks: Mapping[int, int],
) -> tuple[dict[int, Reranked], str | None]:
    """
    Rerank by a model; one that fails takes nothing away but its own part.

    Args:
        chunks: Document id → the chunk that is shown to the model; without one, the beginning.

    Returns:
        Document id → score, and what went wrong.
    """
    passages = list(_passages(reader, candidates, chunks))
    try:
        scores = reranker.rerank(text, passages, timeout_s=timeout_s)
    except InferenceError as error:
        return {}, f"Not reranked: {error}"
    if len(scores) != len(passages):
        return {}, f"Not reranked: {len(scores)} scores came for {len(passages)} passages."
    return {
        number: Reranked(min(1.0, max(0.0, float(score))))
        for number, score in zip(candidates, scores, strict=True)
    }, None


def _passages(
    reader: Reader, candidates: Sequence[int], chunks: Mapping[int, int]
) -> Iterable[str]:
    for number in candidates:
        page = reader.documents.full(number)
        chunk = chunks.get(number)
        spans = reader.vectors.chunk_spans([chunk]) if chunk is not None else {}
        start, end, _ = spans[chunk] if chunk is not None else (page.body_start, None, 0)
        yield f"{page.info.title}\n{page.text[start:end]}"[:PASSAGE_CHARS]
