"""
The fourth step of every search, calibration: estimate how likely a hit is to answer the question.

A blend only orders the candidates of one search, and even a hopeless query has a best one.
`relevance` is a probability: of the best hits with a relevance of 0.7, about seven in ten answer
their question, in a collection that answers every second question. It is a logistic regression
on a few measures, fitted by ``benchmarks/relevance.py``; docs/search.md shows how well it holds.

The scores of a reply are the blends, scaled so that the best hit's score is its relevance. So the
order stays, and a score means the same in every reply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from math import exp, fsum, log10
from typing import TYPE_CHECKING, NamedTuple

from qmd.search.candidates import Candidate
from qmd.search.named import MOST_LEADING
from qmd.search.query.terms import Script
from qmd.search.words.weights import QueryWords
from qmd.values import SearchRequest
from qmd.values.search import LEAST_DEPTH

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.documents import FullDocument

#: The constant and the coefficients of `features` for a search without vectors, by the script of
#: the query: a pair of Chinese characters is more often held by chance than a word. (The number of
#: words that are held does not help an alphabet.)
WORDS: Mapping[Script, Sequence[float]] = {
    "alphabet": (-1.69, 3.53, 2.17, 0.57, 2.39, 0.0),
    "characters": (-1.18, 2.07, 1.96, 0.78, 2.97, 2.49),
}
#: The same for a search with vectors: cosines are nearer to each other in Chinese.
BOTH: Mapping[Script, Sequence[float]] = {
    "alphabet": (-2.55, 0.93, 2.0, 1.22, 3.71, 6.79),
    "characters": (-8.06, 0.17, 3.8, 1.03, 4.33, 12.68),
}
#: Documents that one statement reads. Few, as the later ones may not be needed.
READ_AT_ONCE = 10
#: Nearness is limited to this range, beyond which it says nothing more.
NEAREST, FARTHEST = 1.25, -0.5
#: A greater lead says nothing more. Of two documents, one often has all the evidence.
GREATEST_LEAD = 0.6
#: More words that are held say nothing more.
MOST_WORDS = 6
#: The size of the smallest collections that were measured.
FEWEST_DOCUMENTS = 10
#: The lead of a candidate whose lead is not known: the mean of best hits with vectors in
#: collections of ten to thirty documents, and that of all others.
SMALL_LEAD, TYPICAL_LEAD = 0.3, 0.16
#: The least relevance of a document of which the query is a name, as long as few have this name:
#: of the best hits for exact titles, 85 to 100 % answer.
NAMED = 0.9
#: The most relevance of a document of which no more is known than that it shares one word, and
#: that the others, many or rarer, have more than 1 - `ONE_OF_MANY` of the weight of the query.
BY_CHANCE, ONE_OF_MANY = 0.15, 0.4
#: If no hit is as relevant as this, the reply says that nothing seems to answer.
LEAST_CONFIDENCE = 0.16


class Evidence(NamedTuple):
    """
    The measures from which relevance is estimated.

    Attributes:
        coverage: The share of the query's words that the document holds, 0..1. Rare words count
            more. An exact hit has 1; None if the query has no words.
        near: `qmd.search.meaning.nearness.relative_nearness`; None if it is not known.
        lead: By how much its blend exceeds that of the best other candidate, as a share of the best
            blend, -1..1. If a page answers a question, the next one is often far behind; a question
            that none answers has many that are about as good.
        documents: How many documents the index has. The more there are, the more of them have some
            of the words and are near by chance.
        title: The share of the query's words that a name of the document holds (its title, its
            file name or an alias), 0..1, weighed like coverage.
        held: How many words of the query the document holds.
        rest: Like coverage, without the word that counts most of those that the document holds: 0
            for one word of several, which even a document about something else often shares.
        script: What most words of the query are.
    """

    coverage: float | None
    near: float | None
    lead: float = TYPICAL_LEAD
    documents: int = 1
    title: float = 0.0
    held: int = 0
    rest: float = 1.0
    script: Script = "alphabet"


class Estimated(NamedTuple):
    """A candidate with its document and its relevance, 0..1, rounded to four decimals."""

    candidate: Candidate
    page: FullDocument
    evidence: Evidence
    relevance: float


class Calibrated(NamedTuple):
    """
    A candidate with its document, its relevance and its score.

    Attributes:
        relevance: 0..1, rounded to four decimals.
        score: The candidate's blend, scaled; 0..1, rounded to four decimals.
    """

    candidate: Candidate
    page: FullDocument
    evidence: Evidence
    relevance: float
    score: float


def calibrate(
    reader: Reader,
    request: SearchRequest,
    candidates: Sequence[Candidate],
    words: QueryWords,
    named: Collection[int] = (),
    *,
    is_measured: bool = True,
) -> list[Calibrated]:
    """
    Estimate the relevance of the best candidates, score them, and drop what the request refuses.

    Candidates with less than the minimum relevance are no hits, so they are dropped first. The
    minimum score and the limit only cut the reply: no score depends on them.

    Args:
        candidates: Best first.
        named: The documents of which the query is a name. The first `MOST_LEADING` of them answer.
        is_measured: Whether blends say how far apart candidates are. Those of ranks do not.

    Returns:
        At most ``request.limit`` candidates with at least the minimum relevance and the minimum
        score, in their order.
    """
    # Only a small collection has few candidates with vectors; few may hold the words anywhere.
    has_vectors = any(candidate.nearness is not None for candidate in candidates)
    leads = measure_leads(
        [candidate.blend for candidate in candidates],
        is_measured=is_measured,
        small=SMALL_LEAD if has_vectors else TYPICAL_LEAD,
    )
    with_name = (each.document_id for each in candidates if each.document_id in named)
    leading = set(islice(with_name, MOST_LEADING))
    estimated = _estimate_each(reader, candidates[: request.depth], leads, words, leading)
    relevant = (entry for entry in estimated if entry.relevance >= request.min_relevance)
    good = takewhile(lambda entry: entry.score >= request.min_score, _score_each(relevant))
    return list(islice(good, request.limit))


def _estimate_each(
    reader: Reader,
    candidates: Sequence[Candidate],
    leads: Sequence[float],
    words: QueryWords,
    named: Collection[int],
) -> Iterator[Estimated]:
    script = words.script
    for start in range(0, len(candidates), READ_AT_ONCE):
        batch = candidates[start : start + READ_AT_ONCE]
        pages = reader.documents.full([candidate.document_id for candidate in batch])
        held = _held_words(reader, batch, words)
        batch_leads = leads[start : start + READ_AT_ONCE]
        for candidate, page, lead in zip(batch, pages, batch_leads, strict=True):
            is_exact = candidate.match == "exact"
            matched = held.get(candidate.document_id)
            coverage = None if matched is None else words.coverage(matched)
            evidence = Evidence(
                1.0 if is_exact else coverage,
                candidate.nearness,
                lead,
                words.document_count,
                max(map(words.title_coverage, page.names)),
                len(matched or ()),
                1.0 if is_exact or matched is None else words.rest_coverage(matched),
                script,
            )
            # A query that looks for nothing, such as tag:work, is answered by each document left.
            relevance = 1.0 if words.query.only_narrows else estimate(evidence)
            if candidate.document_id in named:
                relevance = max(relevance, NAMED)
            yield Estimated(candidate, page, evidence, round(relevance, 4))


def _score_each(estimated: Iterable[Estimated]) -> Iterator[Calibrated]:
    """
    Scale the blends of a reply: score = confidence * blend / best blend.

    The confidence is the relevance of the best entry. If all blends are 0, it is everyone's score.

    Args:
        estimated: Best blend first.
    """
    best: Estimated | None = None
    for entry in estimated:
        best = best or entry
        best_blend = best.candidate.blend
        share = entry.candidate.blend / best_blend if best_blend else 1.0
        yield Calibrated(*entry, round(best.relevance * share, 4))


def _held_words(
    reader: Reader, candidates: Sequence[Candidate], words: QueryWords
) -> dict[int, Collection[str]]:
    """
    Document id → the words of the query that the document holds; no entry if that is not known.

    Full text says which words a document holds, whoever found it. So it is as relevant to a
    question in `vsearch` as in `query`.
    """
    held = {each.document_id: each.words for each in candidates if each.words}
    others = [each.document_id for each in candidates if not each.words]
    return held | (words.held_by(reader, others) if words.weights and others else {})


def measure_leads(
    blends: Sequence[float], *, is_measured: bool, small: float = TYPICAL_LEAD
) -> list[float]:
    """
    `Evidence.lead` of each candidate.

    With fewer than `LEAST_DEPTH` candidates it says little, as one of them has to be first.

    Args:
        blends: Best first.
        is_measured: As for `calibrate`.
        small: What it is taken to be if there are few candidates.
    """
    if is_measured and 0 < len(blends) < LEAST_DEPTH:
        return [small] * len(blends)
    if not is_measured or not blends or not blends[0]:
        return [TYPICAL_LEAD] * len(blends)
    best, second = blends[:2]
    return [(best - second) / best, *((blend - best) / best for blend in blends[1:])]


def estimate(evidence: Evidence) -> float:
    """The estimated probability that a hit answers the question, 0..1."""
    constants = (WORDS if evidence.near is None else BOTH)[evidence.script]
    values = [1.0, *features(evidence).values()]
    total = fsum(constant * value for constant, value in zip(constants, values, strict=True))
    probability = 1 / (1 + exp(-total))
    is_one_of_many = not evidence.rest and 0 < (evidence.coverage or 0) < ONE_OF_MANY
    return min(probability, BY_CHANCE) if is_one_of_many and evidence.near is None else probability


def features(evidence: Evidence) -> dict[str, float]:
    """
    What the coefficients of an estimate are multiplied with, in the order of the constants.

    One word of several neither makes a lead nor names a document: "stretch a canvas" shares a
    word, and the title, with a note about a plugin called Canvas that is alone in having it.
    """
    features = {
        "coverage": 0.0 if evidence.coverage is None else evidence.coverage,
        "lead": min(evidence.lead, evidence.rest, GREATEST_LEAD),
        "fewness": -log10(max(evidence.documents, FEWEST_DOCUMENTS)),
        "title": min(evidence.title, evidence.rest),
    }
    if evidence.near is None:
        return features | {"held": min(evidence.held, MOST_WORDS) / MOST_WORDS}
    return features | {"nearness": min(max(evidence.near, FARTHEST), NEAREST)}
