"""Measures the documents that retrieval has found, for each part of the evidence of `query`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    Scale,
    rank_by_evidence,
)
from qmd.search.meaning.late_interaction import token_nearness
from qmd.search.meaning.nearness import relative_nearness, whole_documents
from qmd.search.question import RUN_DEPTH
from qmd.search.retrieve import Retrieved
from qmd.values import ModelSpec, Part
from qmd.values.search import EvidencePart

if TYPE_CHECKING:
    from qmd.inference.protocols import TokenStates
    from qmd.search.candidates import Run
    from qmd.search.meaning.retrieval import EmbeddedText
    from qmd.search.question import SearchModels
    from qmd.store import Reader
    from qmd.store.sql.models import StoredModel


def measure_documents(
    reader: Reader,
    retrieved: Retrieved,
    document_ids: Sequence[int],
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
        without: Parts that are left out.

    Returns:
        The second value is a sentence that says which part could not be measured; None for nothing.
    """
    embedded, candidates = retrieved.embedded, retrieved.candidates
    assert embedded is not None
    unembedded_ids = _unembedded_ids(reader, retrieved, embedded, document_ids)
    first_place = FIRST_PLACE if len(retrieved.words.weights) <= FEW_WORDS else 0.0
    measures: list[Measure] = []
    if "words" not in without:
        # A document without any of the words has a bm25 of 0.
        zeros = retrieved.words.document_count
        measures += _measure_runs("words", retrieved.by_words, (), first_place, zeros)
    if "nearest" not in without:
        measures += _measure_runs("nearest", retrieved.by_meaning, unembedded_ids, first_place)

    best_ids = _best_ids(document_ids, measures, WHOLE_DEPTH)
    whole = whole_documents(reader, embedded.vector, best_ids)
    for document_id, (nearest, _) in whole.items():
        if document_id not in retrieved.nearest:
            candidates[document_id].take_chunk(nearest)
    if "whole" not in without:
        means = {document_id: mean for document_id, (_, mean) in whole.items()}
        measures.append(_measure_best("whole", embedded.text, means, best_ids))

    problem = None
    if "tokens" not in without and embedded.tokens is not None:
        best_ids = _best_ids(document_ids, measures, TOKENS_DEPTH)
        chunks = {
            document_id: chunk_id
            for document_id in best_ids
            if (chunk_id := candidates[document_id].chunk_id) is not None
        }
        by_chunk, problem = _compare_tokens(
            reader, embedded.vector.model, embedded.tokens, list(chunks.values()), models
        )
        values = {
            document_id: by_chunk[chunk_id]
            for document_id, chunk_id in chunks.items()
            if chunk_id in by_chunk
        }
        measures.append(_measure_best("tokens", embedded.text, values, best_ids))
    _set_near(retrieved, embedded.spec, unembedded_ids)
    return measures, problem


def _best_ids(document_ids: Sequence[int], measures: Sequence[Measure], count: int) -> list[int]:
    return [document_id for document_id, _ in rank_by_evidence(document_ids, measures)[:count]]


def _unembedded_ids(
    reader: Reader, retrieved: Retrieved, embedded: EmbeddedText, document_ids: Sequence[int]
) -> frozenset[int]:
    """The documents that have no vectors; a run that is not full holds all that have."""
    absent = set(document_ids) - retrieved.nearest.keys()
    if len(retrieved.nearest) < RUN_DEPTH or not absent:
        return frozenset(absent)
    rows = reader.vectors.for_documents(embedded.vector.model, sorted(absent), 1)
    return frozenset(absent - {document_id for _, document_id, _ in rows})


def _set_near(retrieved: Retrieved, spec: ModelSpec, unembedded_ids: Collection[int]) -> None:
    """A document whose vectors were not looked at is taken to be as near as the run's last one."""
    last = list(retrieved.nearest.values())[-1]
    for document_id, candidate in retrieved.candidates.items():
        if document_id not in unembedded_ids:
            nearness = last if candidate.chunk_id is None else candidate.nearness
            candidate.near = relative_nearness(nearness, spec)


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
        documents: How many documents the scale is of; those outside the run have a value of 0.
    """
    for index, run in enumerate(runs):
        if run.values:
            yield Measure(
                part,
                run.text,
                WEIGHTS[part] * EXPANSIONS / (len(runs) - 1) if index else WEIGHTS[part],
                Scale.over(run.values.values(), zeros=max(0, documents - len(run.values))),
                run.values,
                type=run.type,
                unknown_ids=unknown_ids,
                ranks=run.ranks,
                first_place=first_place,
            )


def _measure_best(
    part: EvidencePart, text: str, values: Mapping[int, float], best_ids: Sequence[int]
) -> Measure:
    """The values of the best documents so far; of some of them they may not be known."""
    return Measure(
        part,
        text,
        WEIGHTS[part],
        Scale.over(values.values()),
        values,
        unknown_ids=frozenset(best_ids) - values.keys(),
    )


def _compare_tokens(
    reader: Reader,
    model: StoredModel,
    question: TokenStates,
    chunk_ids: Sequence[int],
    models: SearchModels,
) -> tuple[dict[int, float], str | None]:
    """Chunk id → nearness by tokens; or nothing, and a sentence that says what went wrong."""
    try:
        embedder = models.embedder() if models.embedder is not None else None
        nearness = token_nearness(reader, model, question, chunk_ids, embedder, most=COMPUTED)
    except InferenceError as error:
        return {}, f"Tokens not compared: {error}"
    return nearness, None
