"""
Judges how likely each hit is to answer the question.

A blend only orders the candidates of one search, and even a hopeless query has a best one.
`relevance` is a probability: of the best hits with a relevance of 0.7, about seven in ten answer
their question, in a collection that answers every second question. It is a logistic regression
on a few measures, fitted by ``benchmarks/relevance.py``; docs/search.md shows how well it holds.

The scores of a reply are the blends, scaled so that the best hit's score is its relevance. So the
order stays, and a score means the same in every reply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, takewhile
from math import exp, fsum, log10
from typing import TYPE_CHECKING, Literal

from qmd.records import NamedTuple
from qmd.search.candidates import Candidate
from qmd.search.query import Script
from qmd.search.question import MOST_LEADING
from qmd.search.words import QueryWords, tells_nothing
from qmd.store.sql.documents import NAME_KINDS, NameKind
from qmd.values import SearchRequest
from qmd.values.search import LEAST_DEPTH

if TYPE_CHECKING:
    from qmd.store import Reader

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
#: The same for hits with vectors in the order of evidence (`qmd.search.evidence`): its best hit
#: answers more often, and a lead in evidence says more than one in nearness.
EVIDENCE: Mapping[Script, Sequence[float]] = {
    "alphabet": (-2.1, 1.06, 2.78, 1.27, 2.41, 7.58),
    "characters": (-8.36, 0.0, 4.37, 1.15, 3.66, 14.46),
}
#: Documents that one statement reads. Few, as the later ones may not be needed.
READ_AT_ONCE = 10
#: Nearness is limited to this range, beyond which it says nothing more.
NEAREST, FARTHEST = 1.25, -0.5
#: A greater lead says nothing more. Of two documents, one often has all the grounds.
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
#: that the others, many or rarer, have more than 1 - `ONE_OF_MANY` of the weight of the query; and
#: of any document for words that say nothing, such as "the", to which some vector is always near.
BY_CHANCE, ONE_OF_MANY = 0.15, 0.4
#: If no hit is as relevant as this, the reply says that nothing seems to answer. With the constants
#: of `EVIDENCE` a hit that does not answer is seldom below the first, one that does often above it.
LEAST_CONFIDENCE, LEAST_BY_EVIDENCE = 0.16, 0.3

#: By what candidates are ordered: the score of one retriever, fused ranks or evidence.
Order = Literal["score", "ranks", "evidence"]


class Grounds(NamedTuple):
    """
    The measures from which relevance is estimated.

    Attributes:
        coverage: The share of the query's words that the document holds, 0..1. Rare words count
            more. An exact hit has 1; None if the query has no words.
        nearness: `Candidate.relative_nearness`.
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
        order: By what the hits are ordered. The lead is measured in it.
    """

    coverage: float | None
    nearness: float | None
    lead: float = TYPICAL_LEAD
    documents: int = 1
    title: float = 0.0
    held: int = 0
    rest: float = 1.0
    script: Script = "alphabet"
    order: Order = "score"

    @property
    def constants(self) -> Sequence[float]:
        """What `features` are multiplied with."""
        if self.nearness is None:
            return WORDS[self.script]
        return (EVIDENCE if self.order == "evidence" else BOTH)[self.script]

    @property
    def least_confidence(self) -> float:
        """The relevance from which a hit seems to answer."""
        is_by_evidence = self.nearness is not None and self.order == "evidence"
        return LEAST_BY_EVIDENCE if is_by_evidence else LEAST_CONFIDENCE


def lead_by_name(
    candidates: Sequence[Candidate], named: Mapping[int, NameKind], *, with_explanation: bool
) -> list[Candidate]:
    """
    Put the named documents first: by the name of the file, by an alias, by the title.

    Documents of the same kind keep their order, and so do the others. A blend that is less than one
    after it is raised to it, so that candidates stay sorted by their blends. The explanation of a
    document that leads tells the name and its own blend.

    Args:
        candidates: Best first.
    """
    if not named:
        return list(candidates)
    leading = [each for each in candidates if each.document_id in named]
    leading.sort(key=lambda each: NAME_KINDS.index(named[each.document_id]))
    leading = leading[:MOST_LEADING]
    leading_ids = {each.document_id for each in leading}
    ordered = leading + [each for each in candidates if each.document_id not in leading_ids]
    if with_explanation:
        for each in leading:
            by_name = {"is": named[each.document_id], "blend": each.blend}
            each.explanation = {"name": by_name, **each.explanation}
    blends = list(accumulate((each.blend for each in reversed(ordered)), max))[::-1]
    for each, blend in zip(ordered, blends, strict=True):
        each.blend = blend
    return ordered


def judge(
    reader: Reader,
    request: SearchRequest,
    candidates: Sequence[Candidate],
    words: QueryWords,
    named: Collection[int] = (),
    *,
    order: Order = "score",
) -> list[Candidate]:
    """
    Estimate the relevance of the best candidates, score them, and drop what the request refuses.

    Candidates with less than the minimum relevance are no hits, so they are dropped first. The
    minimum score and the limit only cut the reply: no score depends on them.

    Args:
        candidates: Best first.
        named: The documents of which the query is a name. The first `MOST_LEADING` of them answer.
        order: What their order is by.

    Returns:
        At most ``request.limit`` candidates with at least the minimum relevance and the minimum
        score, in their order.
    """
    # Only a small collection has few candidates with vectors; few may hold the words anywhere.
    has_vectors = any(candidate.relative_nearness is not None for candidate in candidates)
    leads = measure_leads(
        [candidate.blend for candidate in candidates],
        order=order,
        small=SMALL_LEAD if has_vectors else TYPICAL_LEAD,
    )
    with_name = (each.document_id for each in candidates if each.document_id in named)
    leading = set(islice(with_name, MOST_LEADING))
    judged = _judge_each(reader, candidates[: request.depth], leads, words, leading, order)
    relevant = (each for each in judged if each.relevance >= request.min_relevance)
    good = takewhile(lambda each: each.score >= request.min_score, _score_each(relevant))
    return list(islice(good, request.limit))


def _judge_each(
    reader: Reader,
    candidates: Sequence[Candidate],
    leads: Sequence[float],
    words: QueryWords,
    named: Collection[int],
    order: Order,
) -> Iterator[Candidate]:
    """Read the documents and estimate their relevance, as far as the caller asks for them."""
    script, is_empty = words.script, tells_nothing(words.query)
    for start in range(0, len(candidates), READ_AT_ONCE):
        batch = candidates[start : start + READ_AT_ONCE]
        pages = reader.documents.full([candidate.document_id for candidate in batch])
        held = _held_words(reader, batch, words)
        batch_leads = leads[start : start + READ_AT_ONCE]
        for candidate, page, lead in zip(batch, pages, batch_leads, strict=True):
            is_exact = candidate.match == "exact"
            matched = held.get(candidate.document_id)
            coverage = None if matched is None else words.coverage(matched)
            candidate.page = page
            candidate.grounds = Grounds(
                1.0 if is_exact else coverage,
                candidate.relative_nearness,
                lead,
                words.document_count,
                max(map(words.title_coverage, page.names)),
                len(matched or ()),
                1.0 if is_exact or matched is None else words.rest_coverage(matched),
                script,
                order,
            )
            # A query that looks for nothing, such as tag:work, is answered by each document left.
            relevance = 1.0 if words.query.only_narrows else estimate(candidate.grounds)
            if is_empty:
                relevance = min(relevance, BY_CHANCE)
            if candidate.document_id in named:
                relevance = max(relevance, NAMED)
            candidate.relevance = round(relevance, 4)
            yield candidate


def _score_each(judged: Iterable[Candidate]) -> Iterator[Candidate]:
    """
    Scale the blends of a reply: score = confidence * blend / best blend.

    The confidence is the relevance of the best candidate. If all blends are 0, it is everyone's
    score.

    Args:
        judged: Best blend first.
    """
    best: Candidate | None = None
    for candidate in judged:
        best = best or candidate
        share = candidate.blend / best.blend if best.blend else 1.0
        candidate.score = round(best.relevance * share, 4)
        yield candidate


def _held_words(
    reader: Reader, candidates: Sequence[Candidate], words: QueryWords
) -> dict[int, Collection[str]]:
    """
    Document id → the words of the query that the document holds; no entry if that is not known.

    Full text says which words a document holds, whoever found it.
    """
    held: dict[int, Collection[str]] = {
        each.document_id: each.words for each in candidates if each.words
    }
    others = [each.document_id for each in candidates if not each.words]
    if words.weights and others:
        held.update(words.held_by(reader, others))
    return held


def measure_leads(
    blends: Sequence[float], *, order: Order, small: float = TYPICAL_LEAD
) -> list[float]:
    """
    `Grounds.lead` of each candidate.

    With fewer than `LEAST_DEPTH` candidates it says little, as one of them has to be first.

    Args:
        blends: Best first.
        order: What their order is by. Fused ranks do not say how far apart candidates are.
        small: What it is taken to be if there are few candidates.
    """
    if order != "ranks" and 0 < len(blends) < LEAST_DEPTH:
        return [small] * len(blends)
    if order == "ranks" or not blends or not blends[0]:
        return [TYPICAL_LEAD] * len(blends)
    best, second = blends[:2]
    return [(best - second) / best, *((blend - best) / best for blend in blends[1:])]


def estimate(grounds: Grounds) -> float:
    """The estimated probability that a hit answers the question, 0..1."""
    values = [1.0, *features(grounds).values()]
    products = zip(grounds.constants, values, strict=True)
    total = fsum(constant * value for constant, value in products)
    probability = 1 / (1 + exp(-total))
    is_one_of_many = not grounds.rest and 0 < (grounds.coverage or 0) < ONE_OF_MANY
    return (
        min(probability, BY_CHANCE) if is_one_of_many and grounds.nearness is None else probability
    )


def features(grounds: Grounds) -> dict[str, float]:
    """
    What the coefficients of an estimate are multiplied with, in the order of the constants.

    One word of several neither makes a lead nor names a document: "stretch a canvas" shares a
    word, and the title, with a note about a plugin called Canvas that is alone in having it.
    """
    features = {
        "coverage": 0.0 if grounds.coverage is None else grounds.coverage,
        "lead": min(grounds.lead, grounds.rest, GREATEST_LEAD),
        "fewness": -log10(max(grounds.documents, FEWEST_DOCUMENTS)),
        "title": min(grounds.title, grounds.rest),
    }
    if grounds.nearness is None:
        return features | {"held": min(grounds.held, MOST_WORDS) / MOST_WORDS}
    return features | {"nearness": min(max(grounds.nearness, FARTHEST), NEAREST)}
