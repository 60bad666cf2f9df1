"""
The fifth step of every search, calibration: estimate how likely a hit is to answer the question.

A score only orders the hits of one reply, and even a hopeless query has a best hit. `relevance` is
a probability: of the best hits with a relevance of 0.7, about seven in ten answer their question,
in a collection that answers every second question. It is a logistic regression on two measures
that do not depend on the rank, fitted by ``benchmarks/relevance.py``; docs/search.md shows how
well it holds.
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

#: The constant and the coefficient of coverage, for a search without vectors.
WORDS = (-2.48, 4.65)
#: The constant and the coefficients of coverage and of nearness, for a search with vectors.
BOTH = (-4.17, 3.76, 3.49)
#: Documents that one statement reads. Few, as the later ones may not be needed.
READ_AT_ONCE = 10
#: Nearness is limited to this range, beyond which it says nothing more.
NEAREST, FARTHEST = 1.25, -0.5


class Evidence(NamedTuple):
    """
    The two measures from which relevance is estimated.

    Attributes:
        coverage: The share of the query's words that the document holds, 0..1. Rare words count
            more. An exact hit has 1; None if the query has no words.
        near: `qmd.search.meaning.nearness.relative_nearness`; None if it is not known.
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
    """
    Estimate the relevance of the best candidates, and drop those that the request does not want.

    Returns:
        At most ``request.limit`` candidates with at least the minimum score and the minimum
        relevance, in their order.
    """
    good = [candidate for candidate in candidates if candidate.blend >= request.min_score]
    calibrated = _calibrate_each(reader, good[: request.depth], words)
    relevant = (entry for entry in calibrated if entry.relevance >= request.min_relevance)
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
    """`Evidence.coverage` of a candidate; ``stems``: word of the query → its stem."""
    if candidate.match == "exact":
        return 1.0
    if candidate.words:
        return words.coverage(candidate.words)
    if not stems:
        return None
    folded = segment.fold(f"{page.info.path}\n{page.info.title}\n{page.text}")
    return words.coverage(word for word, stem_of_word in stems.items() if stem_of_word in folded)


def estimate(evidence: Evidence) -> float:
    """The estimated probability that a hit answers the question, 0..1."""
    coverage = 0.0 if evidence.coverage is None else evidence.coverage
    if evidence.near is None:
        constant, by_words = WORDS
        total = constant + by_words * coverage
    else:
        constant, by_words, by_near = BOTH
        near = min(max(evidence.near, FARTHEST), NEAREST)
        total = constant + by_words * coverage + by_near * near
    return 1 / (1 + exp(-total))
