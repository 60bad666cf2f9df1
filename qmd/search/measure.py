"""Measures the documents that retrieval has found, for each part of the evidence of `query`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.search.evidence import (
    COMPUTED,
    EXPANSIONS,
    FEW_WORDS,
    FIRST_PLACE,
    TOKENS_DEPTH,
    WEIGHTS,
    WHOLE_DEPTH,
    Measure,
    Ranked,
    Scale,
    rank_by_evidence,
)
from qmd.search.meaning.late_interaction import token_nearness
from qmd.search.meaning.nearness import DocumentNearness, SemanticHit, document_nearness
from qmd.search.plan import RUN_DEPTH
from qmd.search.retrieve import Retrieved, WordRun
from qmd.values import Part
from qmd.values.search import EvidencePart

if TYPE_CHECKING:
    from qmd.inference.protocols import TokenStates
    from qmd.search.meaning.retrieval import MeaningRun
    from qmd.search.models import SearchModels
    from qmd.store import Reader


@dataclass(frozen=True, slots=True)
class EvidenceOrder:
    """
    Documents in the order of their evidence.

    Attributes:
        ranked: Best first.
        measures: What the sums of ``ranked`` are made of.
        nearest_chunks: Document id → its chunk nearest to the question, where it is known.
        unembedded_ids: The documents that have no vectors yet.
        problem: A sentence that says which part could not be measured; None for nothing.
    """

    ranked: Sequence[Ranked]
    measures: Sequence[Measure]
    nearest_chunks: Mapping[int, SemanticHit]
    unembedded_ids: Collection[int]
    problem: str | None = None


def collect_evidence(
    reader: Reader,
    retrieved: Retrieved,
    document_ids: Sequence[int],
    models: SearchModels,
    without: Collection[Part] = (),
) -> EvidenceOrder:
    """
    Measure documents and sort them.

    The runs give the words and the nearest chunk of all documents. The whole document and the
    tokens cost more, so only the best so far are measured, the others counting as 0: none of those
    can overtake.

    Args:
        retrieved: Has a run by meaning.
        document_ids: The documents of all runs. Those with equal evidence keep this order.
        without: Parts that are left out.
    """
    original = retrieved.by_meaning[0]
    unembedded_ids = _unembedded_ids(reader, original, document_ids)
    first_place = FIRST_PLACE if len(retrieved.words.weights) <= FEW_WORDS else 0.0
    measures: list[Measure] = []
    if "words" not in without:
        measures += _measure_words(retrieved.by_words, retrieved.words.document_count, first_place)
    if "nearest" not in without:
        measures += _measure_nearest(retrieved.by_meaning, unembedded_ids, first_place)
    ranked = rank_by_evidence(document_ids, measures)

    best_ids = [entry.document_id for entry in ranked[:WHOLE_DEPTH]]
    whole = document_nearness(reader, original.model, original.question, best_ids)
    nearest_chunks = (
        retrieved.semantic_hits
        | {document_id: entry.best for document_id, entry in whole.items()}
        | {hit.document_id: hit for hit in original.hits}
    )
    if "whole" not in without:
        measures.append(_measure_whole(original.text, whole, best_ids))
        ranked = rank_by_evidence(document_ids, measures)

    problem = None
    if "tokens" not in without and original.tokens is not None:
        best_ids = [entry.document_id for entry in ranked[:TOKENS_DEPTH]]
        chunks = {
            document_id: nearest_chunks[document_id].chunk_id
            for document_id in best_ids
            if document_id in nearest_chunks
        }
        by_chunk, problem = _compare_tokens(
            reader, original, original.tokens, list(chunks.values()), models
        )
        measures.append(_measure_tokens(original.text, by_chunk, chunks, best_ids))
        ranked = rank_by_evidence(document_ids, measures)
    return EvidenceOrder(ranked, measures, nearest_chunks, unembedded_ids, problem)


def _unembedded_ids(
    reader: Reader, original: MeaningRun, document_ids: Sequence[int]
) -> frozenset[int]:
    """The documents that have no vectors; a run that is not full holds all that have."""
    absent = set(document_ids) - {hit.document_id for hit in original.hits}
    if len(original.hits) < RUN_DEPTH or not absent:
        return frozenset(absent)
    rows = reader.vectors.for_documents(original.model, sorted(absent), 1)
    return frozenset(absent - {document_id for _, document_id, _ in rows})


def _measure_words(
    runs: Sequence[WordRun], document_count: int, first_place: float
) -> Iterator[Measure]:
    """
    The bm25 of the documents of each run.

    An exact hit counts with at least the bm25 of the relaxed hits behind it in the run.

    Args:
        document_count: How many documents the index has.
        first_place: As in `Measure`.
    """
    for index, run in enumerate(runs):
        values: dict[int, float] = {}
        highest = 0.0
        for hit in reversed(run.hits):
            values[hit.document_id] = highest = max(highest, hit.bm25)
        if values:
            # A document without any of the words has a bm25 of 0.
            scale = Scale.over(values.values(), zeros=document_count - len(values))
            yield Measure(
                "words",
                run.text,
                _weight("words", index, len(runs)),
                scale,
                values,
                type="expansion" if index else "original",
                ranks={hit.document_id: rank for rank, hit in enumerate(run.hits, 1)},
                first_place=first_place,
            )


def _measure_nearest(
    runs: Sequence[MeaningRun], unembedded_ids: Collection[int], first_place: float
) -> Iterator[Measure]:
    """The nearness of the best chunk of the documents of each run."""
    for index, run in enumerate(runs):
        values = {hit.document_id: hit.nearness for hit in run.hits}
        if values:
            yield Measure(
                "nearest",
                run.text,
                _weight("nearest", index, len(runs)),
                Scale.over(values.values()),
                values,
                type="expansion" if index else "original",
                unknown_ids=unembedded_ids,
                ranks={hit.document_id: rank for rank, hit in enumerate(run.hits, 1)},
                first_place=first_place,
            )


def _measure_whole(
    text: str, whole: Mapping[int, DocumentNearness], best_ids: Sequence[int]
) -> Measure:
    """The mean nearness of all chunks of the best documents."""
    values = {document_id: entry.mean for document_id, entry in whole.items()}
    return Measure(
        "whole",
        text,
        WEIGHTS["whole"],
        Scale.over(values.values()),
        values,
        unknown_ids=frozenset(best_ids) - values.keys(),
    )


def _compare_tokens(
    reader: Reader,
    original: MeaningRun,
    question: TokenStates,
    chunk_ids: Sequence[int],
    models: SearchModels,
) -> tuple[dict[int, float], str | None]:
    """Chunk id → nearness by tokens; or nothing, and a sentence that says what went wrong."""
    try:
        embedder = models.embedder() if models.embedder is not None else None
        nearness = token_nearness(
            reader, original.model, question, chunk_ids, embedder, most=COMPUTED
        )
    except InferenceError as error:
        return {}, f"Tokens not compared: {error}"
    return nearness, None


def _measure_tokens(
    text: str, by_chunk: Mapping[int, float], chunks: Mapping[int, int], best_ids: Sequence[int]
) -> Measure:
    """
    How near the tokens of the best documents are to the question's, each by its best chunk.

    Args:
        by_chunk: Chunk id → nearness; chunks without token states are missing.
        chunks: Document id → its best chunk.
    """
    values = {
        document_id: by_chunk[chunk_id]
        for document_id, chunk_id in chunks.items()
        if chunk_id in by_chunk
    }
    return Measure(
        "tokens",
        text,
        WEIGHTS["tokens"],
        Scale.over(values.values()),
        values,
        unknown_ids=frozenset(best_ids) - values.keys(),
    )


def _weight(part: EvidencePart, index: int, runs: int) -> float:
    """The weight of a retriever's run; the first is that of the question, the others expansions."""
    return WEIGHTS[part] * EXPANSIONS / (runs - 1) if index else WEIGHTS[part]
