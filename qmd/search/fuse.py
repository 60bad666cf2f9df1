"""
Fusion: merges several runs into one order by reciprocal rank, and mixes in a reranker's scores.

Both orders are for `query` without vectors or with `--no-rerank`. A reranker that the user has
named reads a passage of each document, with vectors, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.parse.lines import line_starts
from qmd.search import meaning
from qmd.search.candidates import Run
from qmd.search.present.snippet import make_snippet, needles
from qmd.search.retrieve import Retrieved

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker
    from qmd.store import Reader
    from qmd.store.sql.documents import FullDocument

#: The rank offset of reciprocal rank fusion, k; 60 is the value of its authors.
RRF_K = 60
#: A passage has at most this many characters. A model may read fewer.
PASSAGE_CHARS = 4000
#: A passage that is chosen by words begins this many characters before its best line.
BEFORE = 200


def reciprocal_rank_fusion(runs: Sequence[Run]) -> dict[int, float]:
    """
    Merge ranked runs by summed reciprocal rank, with a bonus for the top of any run.

    Args:
        runs: Each best first.

    Returns:
        Document id → (sum of its `share` of each run + its `bonus`) / (the greatest possible sum),
        0..1. Best first; ties broken by document id, so the order is stable. Independent of the
        order of the runs.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009. The weights, and the bonus for a document's
    best rank (0.05 for rank 1, 0.02 for ranks 2 and 3), are those of tobi/qmd.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(share(run, 1) for run in runs) + 0.05
    shares: dict[int, list[float]] = {}
    best_ranks: dict[int, int] = {}
    for run in runs:
        for document_id, rank in run.ranks.items():
            shares.setdefault(document_id, []).append(share(run, rank))
            best_ranks[document_id] = min(rank, best_ranks.get(document_id, rank))
    fused = {
        document_id: (fsum(parts) + bonus(best_ranks[document_id])) / best_possible
        for document_id, parts in shares.items()
    }
    return _sorted(fused)


def share(run: Run, rank: int) -> float:
    """What a rank in a run adds to a fused score."""
    return run.weight / (RRF_K + rank)


def bonus(best_rank: int) -> float:
    """What a document's best rank in any run adds to its fused score."""
    if best_rank == 1:
        return 0.05
    return 0.02 if best_rank <= 3 else 0.0


def blend_weights(rank: int) -> tuple[float, float]:
    """
    The weights of the fused and of the reranked score, which add up to 1.

    Args:
        rank: The document's rank after fusion, from 0.

    Source: tobi/qmd. The better the fused rank, the less a reranker may change it.
    """
    if rank < 3:
        return 0.75, 0.25
    if rank < 10:
        return 0.60, 0.40
    return 0.40, 0.60


def blend_scores(fused: Mapping[int, float], reranked: Mapping[int, float]) -> dict[int, float]:
    """
    Mix fused scores and a model's scores by rank, and sort by the result.

    Args:
        fused: Document id → fused score, best first.
        reranked: Document id → score, 0..1. If it is empty, the fused scores stay as they are.
            A document that is missing counts as 0.

    Returns:
        Document id → `blend_weights` · (fused, reranked), 0..1; best first, ties by document id.
    """
    if not reranked:
        return dict(fused)
    mixed = {}
    for rank, (document_id, rrf) in enumerate(fused.items()):
        by_rank, by_model = blend_weights(rank)
        mixed[document_id] = by_rank * rrf + by_model * reranked.get(document_id, 0.0)
    return _sorted(mixed)


def _sorted(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def ask_model(
    reranker: Reranker, prompt: str, passages: Sequence[str], timeout_s: float
) -> tuple[Sequence[float | None], str | None]:
    """
    A score (0..1) for each passage, None for those that the model did not reach in time.

    The second value is a sentence that says what is missing. If the model failed, there are no
    scores.

    Args:
        prompt: The query as the model reads it.
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


def passages_of(reader: Reader, retrieved: Retrieved, document_ids: Sequence[int]) -> list[str]:
    """
    For each document its title, and the part of it that is most likely to answer the query.

    That part is the chunk nearest to the question; in a document without vectors it begins shortly
    before the line that holds most of the query's words.
    """
    chunks = _nearest_chunks(reader, retrieved, document_ids)
    spans = reader.vectors.chunk_spans(list(chunks.values())) if chunks else {}
    query_needles = needles(retrieved.words.query)
    passages = []
    for page in reader.documents.full(document_ids):
        chunk_id = chunks.get(page.info.id)
        if chunk_id is not None:
            start, end, _ = spans[chunk_id]
        else:
            start, end = _start_by_words(page, query_needles), len(page.text)
        passages.append(f"{page.info.title}\n{page.text[start:end]}"[:PASSAGE_CHARS])
    return passages


def _nearest_chunks(
    reader: Reader, retrieved: Retrieved, document_ids: Sequence[int]
) -> Mapping[int, int]:
    """Document id → the id of its chunk nearest to the question, for documents with vectors."""
    candidates = retrieved.candidates
    chunks = {
        document_id: chunk_id
        for document_id in document_ids
        if document_id in candidates and (chunk_id := candidates[document_id].chunk_id) is not None
    }
    other_ids = [document_id for document_id in document_ids if document_id not in chunks]
    if retrieved.embedded is not None and other_ids:
        best = meaning.nearness.best_chunks_of(reader, retrieved.embedded, other_ids)
        chunks |= {
            document_id: each.chunk_id
            for document_id, each in best.items()
            if each.chunk_id is not None
        }
    return chunks


def _start_by_words(page: FullDocument, query_needles: Mapping[str, float]) -> int:
    """The position at which the passage of a document without vectors begins."""
    if len(page.text) - page.body_start <= PASSAGE_CHARS // 2:
        return page.body_start
    best_line = make_snippet(page.text, page.body_start, query_needles, names=page.names).line
    return max(page.body_start, line_starts(page.text)[best_line - 1] - BEFORE)
