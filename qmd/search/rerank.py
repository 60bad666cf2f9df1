"""Asks the reranker that the user has named, and chooses the passage of each document it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.parse.lines import line_starts
from qmd.search.meaning.nearness import best_chunks_of
from qmd.search.present.snippet import make_snippet, needles
from qmd.search.retrieve import Retrieved

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker
    from qmd.store import Reader
    from qmd.store.sql.documents import FullDocument

#: A passage has at most this many characters. A model may read fewer.
PASSAGE_CHARS = 4000
#: A passage that is chosen by words begins this many characters before its best line.
BEFORE = 200


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
        best = best_chunks_of(reader, retrieved.embedded.vector, other_ids)
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
