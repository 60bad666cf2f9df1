"""
Orders documents by evidence: by how far ahead of the others each of them is.

Fusion by ranks does not see how far apart two scores are. Here each part of the evidence
(`WEIGHTS` has them all) is standardised over the documents that it was measured of, weighted and
added. So a document far ahead in one part beats one that is middling in all.

Each part is shifted so that the last document has 0. The shift is the same for all documents and
does not change the order, and no contribution is negative.

A reranker that the user has named is one more part, and counts as far as it agrees with the others
(`measure_by_model`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import InferenceError
from qmd.search import meaning
from qmd.search.question import RUN_DEPTH, SearchModels
from qmd.search.retrieve import Retrieved
from qmd.values import Part
from qmd.values.search import EvidencePart

if TYPE_CHECKING:
    from qmd.inference.protocols import TokenStates
    from qmd.search.candidates import Candidate, Run
    from qmd.search.meaning.nearness import QuestionVector, WholeDocument
    from qmd.store import Reader

# --- the constants of the evidence --------------------------------------------------------

#: What one standard deviation adds to the sum, in each part.
WEIGHTS: Mapping[EvidencePart, float] = {
    "words": 1.25,
    "nearest": 0.55,
    "whole": 1.0,
    "opening": 0.9,
    "tokens": 1.1,
    "english": 2.0,
}
#: What the first place in a run adds to the standardised value, if the query has at most
#: `FEW_WORDS` words (in Chinese: pairs of characters); the second place adds half of that, the
#: third a third. Such a query often names the page that it looks for, and there the order of a run
#: says more than its values: on four sets of keywords and titles that gained .008 MRR@10. For
#: questions it gains nothing.
FIRST_PLACE, FEW_WORDS = 1.25, 6
#: The runs of all expansions of a retriever count together as this share of the question's own.
EXPANSIONS_SHARE = 0.5
#: Values are standardised over this many of the best documents of a run.
SCALE_DEPTH = 100
#: The greatest standardised value, in standard deviations. Without a bound, the only document of a
#: hundred that holds a word of the question would be at 10. (A bound of 4 costs .013 mean MRR@10.)
MOST = 6.0
#: How many of the best documents by words and nearest chunk are looked at as a whole. (With 50,
#: success@10 is .005 to .023 less on four sets of questions, and a query 1 to 3 ms shorter.)
WHOLE_DEPTH = 100
#: How many of the best documents by all other parts have their tokens compared.
TOKENS_DEPTH = 30
#: So many nearest chunks of each are compared, and the best of them counts: the chunk that answers
#: is not always the one that is nearest as a whole.
TOKENS_CHUNKS = 4
#: Of these chunks, so many that have no stored token states are run through the model while the
#: query waits: about 50 ms each. The background gives each chunk its own (`qmd.ingest.keep`).
COMPUTED = 5
#: What one standard deviation of a reranker's scores adds, if they are trusted in full.
MODEL_WEIGHT = 2.0
#: The agreement (`trust`) up to which they are not trusted, and from which they are in full. Random
#: scores of 30 documents agree by more than the first in one of twelve questions, half as much as
#: the second in one of fifty.
NO_TRUST, FULL_TRUST = 0.1, 0.4
#: Fewer scores agree or disagree by chance, so they do not count.
LEAST_SCORES = 10


@dataclass(frozen=True)
class Measure:
    """
    What was measured of some documents, for one part of the evidence.

    Attributes:
        query: The text that was searched for.
        weight: What one standard deviation adds to the sum.
        values: Document id → value; greater is better.
        zeros: How many zeros ``values`` leaves out.
        unknown_ids: Documents that could not be measured. They count as average, because an
            unknown distance is not a large one. Any other document without a value counts as last.
        ranks: Document id → rank in the run, from 1; empty if the values are not those of a run.
        first_place: What rank 1 adds to the standardised value; rank r adds ``first_place`` / r.
    """

    part: Part
    query: str
    weight: float
    values: Mapping[int, float]
    zeros: int = 0
    type: Literal["original", "expansion"] = "original"
    unknown_ids: Collection[int] = frozenset()
    ranks: Mapping[int, int] = field(default_factory=dict)
    first_place: float = 0.0

    @cached_property
    def scale(self) -> tuple[float, float, float]:
        """
        How values are standardised: the mean and the deviation of the best `SCALE_DEPTH` of them,
        and the least of these, as which a document without a value counts.
        """
        top = sorted(self.values.values(), reverse=True)[:SCALE_DEPTH]
        top += [0.0] * min(self.zeros, SCALE_DEPTH - len(top))
        if not top:
            return 0.0, 0.0, 0.0
        mean = fsum(top) / len(top)
        deviation = sqrt(fsum((value - mean) ** 2 for value in top) / len(top))
        return mean, deviation, top[-1]

    def standardise(self, value: float) -> float:
        """Standard deviations between the last value and this one, at least 0."""
        mean, deviation, last = self.scale
        # Equal values have a deviation of up to 1e-8, from rounding.
        if value <= last or deviation <= 1e-6:
            return 0.0
        return min((value - mean) / deviation, MOST) - (last - mean) / deviation

    def value(self, document_id: int) -> float:
        """The value that a document counts with."""
        mean, _, last = self.scale
        return self.values.get(document_id, mean if document_id in self.unknown_ids else last)

    def place(self, document_id: int) -> float:
        """What the document's rank adds to its standardised value; 0 without a rank."""
        rank = self.ranks.get(document_id)
        return self.first_place / rank if rank else 0.0

    @cached_property
    def contributions(self) -> dict[int, float]:
        """Document id → what this part adds to its sum, at least 0; no entry stands for 0."""
        average = self.weight * self.standardise(self.scale[0])
        contributions = dict.fromkeys(self.unknown_ids, average)
        for document_id, value in self.values.items():
            standardised = self.standardise(value) + self.place(document_id)
            contributions[document_id] = self.weight * standardised
        return contributions

    def explain(self, document_id: int) -> dict[str, Any]:
        """
        The contribution to a document's sum, with the figures that it is computed from.

        contribution = weight * (standardised + place); standardised = deviations(value) -
        deviations(last), at least 0; deviations(x) = min((x - mean) / deviation, `MOST`);
        place = ``first_place`` / rank, or 0 without a rank.
        """
        value, (mean, deviation, last) = self.value(document_id), self.scale
        standardised, place = self.standardise(value), self.place(document_id)
        return {
            "part": self.part,
            "query": self.query,
            "type": self.type,
            "rank": self.ranks.get(document_id),
            "value": value,
            "mean": mean,
            "deviation": deviation,
            "last": last,
            "standardised": standardised,
            "place": place,
            "weight": self.weight,
            "contribution": self.weight * (standardised + place),
        }


def rank_by_evidence(
    document_ids: Iterable[int], measures: Sequence[Measure]
) -> list[tuple[int, float]]:
    """
    Sort documents by the sum of the contributions of all measures.

    Returns:
        Document ids with these sums, best first; documents with equal sums keep their order.
    """
    by_measure = [measure.contributions for measure in measures]
    totals = {
        # fsum is exact, so the sum does not depend on the order of the measures.
        document_id: fsum([by_id.get(document_id, 0.0) for by_id in by_measure])
        for document_id in document_ids
    }
    return sorted(totals.items(), key=lambda item: -item[1])


def measure_documents(
    reader: Reader,
    retrieved: Retrieved,
    document_ids: Sequence[int],
    unembedded_ids: Collection[int],
    models: SearchModels,
    without: Collection[Part] = (),
) -> tuple[list[Measure], str | None]:
    """
    Measure the candidates; each learns its nearest chunk and how near it is.

    The runs give the words and the nearest chunk of all documents. The whole document and the
    tokens cost more, so only the best so far are measured, the others counting as 0: none of those
    can overtake.

    Args:
        retrieved: Has a run by meaning.
        document_ids: The documents of all runs. Those with equal evidence keep this order.
        unembedded_ids: Those of them that have no vectors.
        without: Parts that are left out.

    Returns:
        The second value is a sentence that says which part could not be measured; None for nothing.
    """
    embedded, candidates = retrieved.embedded, retrieved.candidates
    assert embedded is not None
    first_place = FIRST_PLACE if len(retrieved.words.weights) <= FEW_WORDS else 0.0
    measures: list[Measure] = []
    if "words" not in without:
        # A document without any of the words has a bm25 of 0.
        zeros = retrieved.words.document_count
        measures += _measure_runs("words", retrieved.by_words, (), first_place, zeros)
    if "nearest" not in without:
        measures += _measure_runs("nearest", retrieved.by_meaning, unembedded_ids, first_place)

    best_ids = _best_ids(document_ids, measures, WHOLE_DEPTH)
    whole = meaning.nearness.whole_documents(reader, embedded, best_ids, TOKENS_CHUNKS)
    for document_id, document in whole.items():
        if document_id not in retrieved.nearest:
            candidates[document_id].take_chunk(document.nearest)
    for part, values in _of_whole_documents(whole).items():
        if part not in without:
            measures.append(_measure_best(part, embedded.text, values, best_ids))

    problem = None
    if embedded.tokens is not None:
        best_ids = _best_ids(document_ids, measures, TOKENS_DEPTH)
        chunks = {each: _chunks_to_compare(candidates[each], whole.get(each)) for each in best_ids}
        compared, problem = _compare_tokens(
            reader, embedded, embedded.tokens, _nearest_first(chunks.values()), models
        )
        for part, by_chunk in compared.items():
            if part not in without:
                values = _best_of(chunks, by_chunk)
                measures.append(_measure_best(part, embedded.text, values, best_ids))
    retrieved.set_relative_nearness(retrieved.nearest_chunks, unembedded_ids)
    return measures, problem


def measure_by_model(
    text: str,
    scores: Mapping[int, float],
    measures: Sequence[Measure],
    asked_ids: Collection[int],
) -> Measure:
    """
    The scores of a reranker, with a weight that says how far they are trusted for this question.

    Args:
        text: The question as the model read it.
        scores: Document id → score; greater is better.
        measures: All other parts.
        asked_ids: The documents that the model was given. Those without a score count as average.
    """
    weight = MODEL_WEIGHT * trust(scores, measures)
    unknown_ids = frozenset(asked_ids) - scores.keys()
    return Measure("model", text, weight, scores, unknown_ids=unknown_ids)


def trust(scores: Mapping[int, float], measures: Sequence[Measure]) -> float:
    """
    How far scores of a reranker are to be trusted for one question, 0..1.

    A model that knows what answers agrees with the words and with the meaning, and with each of
    them beyond what the other explains. One that counts words, or compares vectors, agrees with one
    of them alone; random and constant scores, and those of a wrong prompt, with neither.
    """
    if len(scores) < LEAST_SCORES:
        return 0.0
    by_words, by_meaning = (
        [
            fsum(
                m.contributions.get(each, 0.0) for m in measures if (m.part == "words") is is_words
            )
            for each in scores
        ]
        for is_words in (True, False)
    )
    by_model = list(scores.values())
    words, near, both = (
        _correlation(by_model, by_words),
        _correlation(by_model, by_meaning),
        _correlation(by_words, by_meaning),
    )
    if both is None:
        # Only one of them tells the documents apart, or none does.
        agreement = words if near is None else near
    elif words is None or near is None:
        return 0.0  # all scores are the same
    else:
        agreement = min(_beyond(words, near, both), _beyond(near, words, both))
    share = ((agreement or 0.0) - NO_TRUST) / (FULL_TRUST - NO_TRUST)
    return min(1.0, max(0.0, share))


def _correlation(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Pearson's correlation, -1..1; None if all values of one are equal."""
    mean, mean_of_others = fsum(some) / len(some), fsum(others) / len(others)
    pairs = [(a - mean, b - mean_of_others) for a, b in zip(some, others, strict=True)]
    spread, spread_of_others = (fsum(pair[side] ** 2 for pair in pairs) for side in (0, 1))
    if min(spread, spread_of_others) < 1e-12:
        return None
    return fsum(a * b for a, b in pairs) / sqrt(spread * spread_of_others)


def _beyond(direct: float, other: float, both: float) -> float:
    """The partial correlation: ``direct`` without what ``other`` explains by way of ``both``."""
    left = (1 - other**2) * (1 - both**2)
    return (direct - other * both) / sqrt(left) if left > 1e-9 else 0.0


def _of_whole_documents(
    whole: Mapping[int, WholeDocument],
) -> dict[EvidencePart, dict[int, float]]:
    """Part of the evidence → document id → value, for the parts that look at all chunks."""
    return {
        "whole": {document_id: document.mean for document_id, document in whole.items()},
        "opening": {document_id: document.opening for document_id, document in whole.items()},
    }


def _chunks_to_compare(candidate: Candidate, document: WholeDocument | None) -> Sequence[int]:
    """The ids of the nearest chunks of a document, at most `TOKENS_CHUNKS`, nearest first."""
    nearest = [] if candidate.chunk_id is None else [candidate.chunk_id]
    others = () if document is None else document.chunk_ids
    return list(dict.fromkeys([*nearest, *others]))[:TOKENS_CHUNKS]


def _nearest_first(chunks: Iterable[Sequence[int]]) -> list[int]:
    """The nearest chunk of each document, then the second of each, and so on: the first matter."""
    return [chunk_id for row in zip_longest(*chunks) for chunk_id in row if chunk_id is not None]


def _best_of(
    chunks: Mapping[int, Sequence[int]], by_chunk: Mapping[int, float]
) -> dict[int, float]:
    """Document id → the greatest value of its chunks; documents without a value are left out."""
    values = {
        document_id: [by_chunk[chunk_id] for chunk_id in chunk_ids if chunk_id in by_chunk]
        for document_id, chunk_ids in chunks.items()
    }
    return {document_id: max(each) for document_id, each in values.items() if each}


def _best_ids(document_ids: Sequence[int], measures: Sequence[Measure], count: int) -> list[int]:
    return [document_id for document_id, _ in rank_by_evidence(document_ids, measures)[:count]]


def unembedded_ids_of(
    reader: Reader, retrieved: Retrieved, document_ids: Iterable[int]
) -> frozenset[int]:
    """The documents that have no vectors; a run that is not full holds all that have."""
    absent = set(document_ids) - retrieved.nearest.keys()
    if retrieved.embedded is None or len(retrieved.nearest) < RUN_DEPTH or not absent:
        return frozenset(absent)
    rows = reader.vectors.for_documents(retrieved.embedded.model, sorted(absent), 1)
    return frozenset(absent - {document_id for _, document_id, _ in rows})


def _measure_runs(
    part: EvidencePart,
    runs: Sequence[Run],
    unknown_ids: Collection[int],
    first_place: float,
    documents: int = 0,
) -> Iterator[Measure]:
    """
    The values of the documents of each run.

    Args:
        unknown_ids: As in `Measure`.
        first_place: As in `Measure`.
        documents: How many documents are measured; those outside the run have a value of 0.
    """
    for index, run in enumerate(runs):
        if run.values:
            yield Measure(
                part,
                run.text,
                WEIGHTS[part] * EXPANSIONS_SHARE / (len(runs) - 1) if index else WEIGHTS[part],
                run.values,
                zeros=max(0, documents - len(run.values)),
                type=run.type,
                unknown_ids=unknown_ids,
                ranks=run.ranks,
                first_place=first_place,
            )


def _measure_best(
    part: EvidencePart, text: str, values: Mapping[int, float], best_ids: Sequence[int]
) -> Measure:
    """The values of the best documents so far; of some of them they may not be known."""
    unknown_ids = frozenset(best_ids) - values.keys()
    return Measure(part, text, WEIGHTS[part], values, unknown_ids=unknown_ids)


def _compare_tokens(
    reader: Reader,
    embedded: QuestionVector,
    tokens: TokenStates,
    chunk_ids: Sequence[int],
    models: SearchModels,
) -> tuple[dict[EvidencePart, dict[int, float]], str | None]:
    """Part → chunk id → nearness; or nothing, and a sentence that says what went wrong."""
    try:
        embedder = models.embedder() if models.embedder is not None else None
        codes = meaning.nearness.codes_of(
            reader, embedded.model, chunk_ids, embedder, most=COMPUTED
        )
    except InferenceError as error:
        return {}, f"Tokens not compared: {error}"
    projection = meaning.nearness.projection_for(reader, embedded.model)
    compared: dict[EvidencePart, dict[int, float]] = {"tokens": {}}
    if projection is not None and len(tokens.ids):
        compared["tokens"] = meaning.nearness.late_interaction(tokens, projection, codes)
    if tokens.english is not None:
        compared["english"] = meaning.nearness.english_nearness(tokens.english, codes)
    return compared, None
