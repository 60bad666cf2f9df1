"""Chooses the passage of each document that a reranker's model reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qmd.parse.lines import line_starts
from qmd.search.meaning.nearness import best_chunks_of
from qmd.search.present.snippet import make_snippet, needles
from qmd.search.retrieve import Retrieved

if TYPE_CHECKING:
    from qmd.search.present.snippet import Needle
    from qmd.store import Reader
    from qmd.store.sql.documents import FullDocument

#: A passage has at most this many characters. A model may read fewer.
PASSAGE_CHARS = 4000
#: A passage that is chosen by words begins this many characters before its best line.
BEFORE = 200


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
    hits = retrieved.semantic_hits
    chunks = {
        document_id: hits[document_id].chunk_id
        for document_id in document_ids
        if document_id in hits
    }
    other_ids = [document_id for document_id in document_ids if document_id not in hits]
    if retrieved.by_meaning and other_ids:
        original = retrieved.by_meaning[0]
        best = best_chunks_of(reader, original.model, original.question, other_ids)
        chunks |= {document_id: hit.chunk_id for document_id, hit in best.items()}
    return chunks


def _start_by_words(page: FullDocument, query_needles: Sequence[Needle]) -> int:
    """The position at which the passage of a document without vectors begins."""
    if len(page.text) - page.body_start <= PASSAGE_CHARS // 2:
        return page.body_start
    best_line = make_snippet(page.text, page.body_start, query_needles, names=page.names).line
    return max(page.body_start, line_starts(page.text)[best_line - 1] - BEFORE)
