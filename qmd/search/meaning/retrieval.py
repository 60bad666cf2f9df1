"""
Retrieval by meaning: embed a text, and rank documents by their chunk nearest to it.

The nearest chunks come from a scan of int8 vectors or from vectors in memory; they are then scored
with the exact vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qmd.engine_text import engine_text
from qmd.errors import InferenceError, ModelMismatchError, VectorIndexMissingError
from qmd.inference.protocols import token_embedder
from qmd.search import meaning
from qmd.search.candidates import Candidate
from qmd.search.query import MAX_QUESTION
from qmd.store.sql.vectors import MAX_NEAREST
from qmd.values import ModelSpec

if TYPE_CHECKING:
    from qmd.search.meaning.nearness import QuestionVector
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.search.question import Question, SearchModels
    from qmd.store import Reader, Selection
    from qmd.store.sql.models import StoredModel

#: The first scan of the int8 vectors returns this many chunks for each document to return.
CHUNKS_PER_DOCUMENT = 2
#: A scan returns at least this many chunks, so that exact scoring can correct int8's order.
LEAST = 100
#: The vectors in memory return at most this many chunks; the database answers if more are needed.
MOST_CACHED = 8000


def retrieve_by_meaning(
    reader: Reader,
    text: str,
    question: Question,
    models: SearchModels,
    *,
    with_tokens: bool = False,
) -> tuple[QuestionVector, list[Candidate]]:
    """
    Embed a text and rank the documents nearest to it, best first.

    Args:
        text: Its first `MAX_QUESTION` characters are embedded.
        question: Says which documents may be hits, and how many.
        with_tokens: The token states of the text are needed, if the model gives them.

    Raises:
        InferenceError: See `require_index`; or the text cannot be embedded.
    """
    embedder = models.embedder()
    model = require_index(reader, embedder.spec)
    has_tokens = with_tokens and meaning.nearness.projection_for(reader, model) is not None
    by_token = token_embedder(embedder) if has_tokens else None
    tokens = None
    if by_token is not None:
        vector, tokens = by_token.embed_query_with_tokens(text[:MAX_QUESTION])
    else:
        vector = embedder.embed_query(text[:MAX_QUESTION])
    plain = meaning.nearness.QuestionVector(model, vector, vector, 0.0, text, embedder.spec, tokens)
    embedded = meaning.nearness.centre(reader, plain)
    cache = models.cache() if models.cache is not None else None
    return embedded, _nearest_admitted(reader, embedded, question, cache)


def retrieve_texts_by_meaning(
    reader: Reader,
    texts: Iterable[str],
    question: Question,
    models: SearchModels,
    *,
    with_tokens: bool = False,
) -> tuple[list[tuple[QuestionVector, list[Candidate]]], InferenceError | None]:
    """
    As `retrieve_by_meaning` for each text, up to the first that cannot be embedded.

    Args:
        with_tokens: The token states of the first text are needed.

    Returns:
        The second value is the error for the text that could not be embedded.
    """
    retrieved: list[tuple[QuestionVector, list[Candidate]]] = []
    try:
        for text in texts:
            is_first = not retrieved
            if is_first:
                require_index(reader, None)  # raises before a model is opened for nothing
            retrieved.append(
                retrieve_by_meaning(
                    reader, text, question, models, with_tokens=with_tokens and is_first
                )
            )
    except InferenceError as error:
        return retrieved, error
    return retrieved, None


def require_index(reader: Reader, spec: ModelSpec | None) -> StoredModel:
    """
    The model whose vectors the database holds.

    Args:
        spec: The model that it must be; None for any.

    Raises:
        VectorIndexMissingError: No chunk has a vector yet.
        ModelMismatchError: The vectors were made by another model than ``spec``.
        VectorsUnavailableError: sqlite-vec cannot be loaded here.
    """
    model = reader.models.active()
    if model is None or not reader.models.has_vectors():
        raise VectorIndexMissingError
    reader.vectors.require_engine()
    if spec is not None and model.fingerprint != spec.fingerprint:
        raise ModelMismatchError(
            engine_text(
                "The index was made with the model {name}, not with {other}.",
                name=model.name,
                other=spec.name,
            )
            if model.name != spec.name
            else engine_text(
                "The index was made with another state of the model {name}.", name=model.name
            ),
            hint="Run 'qmd embed' to embed everything with the new model.",
        )
    return model


def _nearest_admitted(
    reader: Reader, embedded: QuestionVector, question: Question, cache: VectorCache | None
) -> list[Candidate]:
    """As `nearest_documents`, without the documents that the query excludes."""
    depth, exclusions = question.most, question.exclusions
    if exclusions is not None and depth is not None:
        depth += depth // 4  # most excluded words are in fewer documents: one scan is then enough
    while True:
        candidates = nearest_documents(reader, embedded, question.selection, depth, cache)
        if exclusions is None:
            return candidates
        admitted = [each for each in candidates if exclusions.admit(reader, each.document_id)]
        if question.most is None or depth is None:
            return admitted
        if len(admitted) >= question.most or len(candidates) < depth:
            return admitted[: question.most]
        depth *= 4


def nearest_documents(
    reader: Reader,
    embedded: QuestionVector,
    selection: Selection,
    limit: int | None,
    cache: VectorCache | None = None,
) -> list[Candidate]:
    """
    The documents nearest to a question, best first; ties by document id.

    Args:
        limit: Return at most this many; None for all.
        cache: The vectors in memory; None to scan the database.
    """
    if limit is None or limit * CHUNKS_PER_DOCUMENT > MAX_NEAREST:
        return meaning.nearness.best_chunks(
            list(reader.vectors.all(embedded.model, selection)), embedded, limit
        )
    if cache is not None:
        candidates = _nearest_in_memory(reader, embedded, selection, limit, cache)
        if candidates is not None:
            return candidates
    return _nearest_in_index(reader, embedded, selection, limit)


def _nearest_in_memory(
    reader: Reader,
    embedded: QuestionVector,
    selection: Selection,
    limit: int,
    cache: VectorCache,
) -> list[Candidate] | None:
    """As `nearest_documents`; None if the vectors in memory cannot answer."""
    direction = embedded.direction
    chunks = max(LEAST, limit * CHUNKS_PER_DOCUMENT)
    while chunks <= MOST_CACHED:
        rows = cache.nearest(reader, embedded.model, direction, chunks, selection)
        if rows is None:
            return None
        candidates = meaning.nearness.best_chunks(rows, embedded, limit)
        if len(candidates) >= limit:
            return candidates
        chunks *= 4  # a few long documents had all of these chunks
    return None


def _nearest_in_index(
    reader: Reader,
    embedded: QuestionVector,
    selection: Selection,
    limit: int,
) -> list[Candidate]:
    direction = embedded.direction
    chunks = max(LEAST, limit * CHUNKS_PER_DOCUMENT)
    while True:
        rows = reader.vectors.nearest(embedded.model, direction, chunks, selection)
        candidates = meaning.nearness.best_chunks(rows, embedded, limit)
        # A few long documents may have all of these chunks: then scan for more, if there are more.
        if len(candidates) >= limit or len(rows) < chunks:
            return candidates
        if chunks >= MAX_NEAREST:
            rows = list(reader.vectors.all(embedded.model, selection))
            return meaning.nearness.best_chunks(rows, embedded, limit)
        chunks = min(chunks * 4, MAX_NEAREST)
