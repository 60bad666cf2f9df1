"""
The step that calibrates: how likely is it that a hit answers the question, whatever its rank?

A score orders the hits of one reply, and every reply has a best hit. `relevance` is an estimated
chance: of best hits with 0.7, about seven in ten answer their question, where every other
question has an answer in the collection at all. It is a logistic regression on two measures that
do not depend on the rank, fitted by ``benchmarks/relevance.py``; docs/search.md shows how well
it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import exp
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse import segment
from qmd.search.candidates import Candidate
from qmd.search.words.weights import QueryWords, stem
from qmd.values import SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.documents import FullDocument

#: The constant, and the coefficient of coverage, where no vectors took part.
WORDS = (-2.48, 4.65)
#: The constant, and the coefficients of coverage and of nearness.
BOTH = (-4.17, 3.76, 3.49)
#: Documents that one statement reads. Few, as the later ones may not be needed.
READ_AT_ONCE = 10
#: Nearness beyond these says nothing more.
NEAREST, FARTHEST = 1.25, -0.5


class Evidence(NamedTuple):
    """
    ``coverage``: the share of the query's words that the document holds, rare ones counting more
    (also those that no document holds); 1 for an exact hit, None where the query has no words.
    ``near``: nearness in meaning, the model's off-topic level being 0, its on-topic level 1
    (`qmd.search.meaning.nearness.relative_nearness`); None where it is not known.
    """

    coverage: float | None
    near: float | None


class Calibrated(NamedTuple):
    """A candidate with its document and its relevance, 0..1."""

    candidate: Candidate
    page: FullDocument
    evidence: Evidence
    relevance: float


def calibrate(
    reader: Reader,
    request: SearchRequest,
    candidates: Sequence[Candidate],
    words: QueryWords,
) -> list[Calibrated]:
    """The best candidates with at least the minimum score and relevance, up to the limit."""
    good = [each for each in candidates if each.score >= request.min_score]
    calibrated = _calibrate_each(reader, good[: request.depth], words)
    relevant = (each for each in calibrated if each.relevance >= request.min_relevance)
    return list(islice(relevant, request.limit))


def _calibrate_each(
    reader: Reader, candidates: Sequence[Candidate], words: QueryWords
) -> Iterator[Calibrated]:
    stems = {word: stem(word) for word in words.weights} if candidates else {}
    for start in range(0, len(candidates), READ_AT_ONCE):
        batch = candidates[start : start + READ_AT_ONCE]
        pages = reader.documents.full([candidate.document_id for candidate in batch])
        for candidate, page in zip(batch, pages, strict=True):
            evidence = Evidence(_coverage(candidate, page, words, stems), candidate.nearness)
            yield Calibrated(candidate, page, evidence, estimate(evidence))


def _coverage(
    candidate: Candidate, page: FullDocument, words: QueryWords, stems: Mapping[str, str]
) -> float | None:
    """The share of the query's words that the document holds; None where it has only signs."""
    if candidate.match == "exact":
        return 1.0
    if candidate.words:
        return words.coverage(candidate.words)
    if not stems:
        return None
    folded = segment.fold(f"{page.info.path}\n{page.info.title}\n{page.text}")
    return words.coverage(word for word, each in stems.items() if each in folded)


def estimate(evidence: Evidence) -> float:
    """0..1; rises with coverage and with nearness."""
    coverage = 0.0 if evidence.coverage is None else evidence.coverage
    if evidence.near is None:
        constant, by_words = WORDS
        total = constant + by_words * coverage
    else:
        constant, by_words, by_near = BOTH
        near = min(max(evidence.near, FARTHEST), NEAREST)
        total = constant + by_words * coverage + by_near * near
    return 1 / (1 + exp(-total))
