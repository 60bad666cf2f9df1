"""
Retrieval by meaning: embed a text, and rank documents by their chunk nearest to it.

The nearest chunks come from a scan of int8 vectors or from vectors in memory; they are then scored
with the exact vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.errors import InferenceError, ModelMismatchError, VectorIndexMissingError
from qmd.inference.protocols import token_embedder
from qmd.search.meaning.late_interaction import projection_for
from qmd.search.meaning.nearness import (
    QuestionVector,
    SemanticHit,
    best_chunks,
    best_chunks_of,
    centre,
)
from qmd.search.query.language import MAX_QUESTION
from qmd.store.vectors import MAX_NEAREST
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import TokenStates
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.search.models import SearchModels
    from qmd.search.parse import Scope
    from qmd.search.plan import Expanded
    from qmd.store import Reader, Selection
    from qmd.store.sql.models import StoredModel

#: The first scan of the int8 vectors returns this many chunks for each document to return.
CHUNKS_PER_DOCUMENT = 2
#: A scan returns at least this many chunks, so that exact scoring can correct int8's order.
LEAST = 100
#: The vectors in memory return at most this many chunks; the database answers if more are needed.
MOST_CACHED = 8000


@dataclass(frozen=True, slots=True)
class MeaningRun:
    """
    The documents nearest to one text, best first.

    Attributes:
        spec: The model that embedded the text.
        model: The same model, as the database has recorded it.
        question: The vector of the text.
        tokens: The token states of the text; None if they are not needed, or the model has none.
    """

    text: str
    spec: ModelSpec
    model: StoredModel
    question: QuestionVector
    hits: Sequence[SemanticHit]
    tokens: TokenStates | None = None


@dataclass(frozen=True, slots=True)
class ExpandedRun:
    """
    The run of an expansion, and how near its documents are to the question itself.

    Attributes:
        by_question: Document id → the document's chunk nearest to the question.
    """

    run: MeaningRun
    by_question: Mapping[int, SemanticHit]


@dataclass(frozen=True, slots=True)
class ExpandedRuns:
    """The runs of a query's expansions; ``problem`` is a sentence if one of them failed."""

    runs: tuple[ExpandedRun, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class MeaningRuns:
    """
    A run for each text.

    If a text could not be embedded, ``problem`` is the error, and the runs are those of the texts
    before it.
    """

    runs: tuple[MeaningRun, ...] = ()
    problem: InferenceError | None = None


def retrieve_by_meaning(
    reader: Reader, text: str, scope: Scope, models: SearchModels, *, with_tokens: bool = False
) -> MeaningRun:
    """
    Embed a text and rank the documents nearest to it.

    Args:
        text: Its first `MAX_QUESTION` characters are embedded.
        scope: Which documents may be hits, and how many.
        with_tokens: The run has the token states of the text, if the model gives them.

    Raises:
        InferenceError: See `require_index`; or the text cannot be embedded.
    """
    if models.embedder is None:
        raise InferenceError("No embedding model is set up.", hint="qmd doctor")
    embedder = models.embedder()
    spec = embedder.spec
    model = require_index(reader, spec)
    has_tokens = with_tokens and projection_for(reader, model) is not None
    by_token = token_embedder(embedder) if has_tokens else None
    tokens = None
    if by_token is not None:
        vector, tokens = by_token.embed_query_with_tokens(text[:MAX_QUESTION])
    else:
        vector = embedder.embed_query(text[:MAX_QUESTION])
    question = centre(reader, model, vector)
    hits = _nearest_in_scope(reader, model, question, scope, models.cache)
    return MeaningRun(text, spec, model, question, hits, tokens)


def retrieve_texts_by_meaning(
    reader: Reader,
    texts: Iterable[str],
    scope: Scope,
    models: SearchModels,
    *,
    with_tokens: bool = False,
) -> MeaningRuns:
    """
    A run for each text, up to the first text that cannot be embedded. Raises nothing for it.

    ``with_tokens``: the first run has the token states of its text, if the model gives them.
    """
    runs: list[MeaningRun] = []
    try:
        for text in texts:
            is_first = not runs
            if is_first:
                require_index(reader, None)  # raises before a model is opened for nothing
            runs.append(
                retrieve_by_meaning(
                    reader, text, scope, models, with_tokens=with_tokens and is_first
                )
            )
    except InferenceError as error:
        return MeaningRuns(tuple(runs), error)
    return MeaningRuns(tuple(runs))


def retrieve_expansions(
    reader: Reader,
    original: MeaningRun,
    expanded: Expanded,
    scope: Scope,
    models: SearchModels,
) -> ExpandedRuns:
    """A run for each expansion; each run says how near its documents are to the question too."""
    others = retrieve_texts_by_meaning(reader, expanded.for_meaning, scope, models)
    runs = []
    for run in others.runs:
        document_ids = [hit.document_id for hit in run.hits]
        by_question = best_chunks_of(reader, original.model, original.question, document_ids)
        runs.append(ExpandedRun(run, by_question))
    problem = f"Expanded in part: {others.problem}" if others.problem else expanded.problem
    return ExpandedRuns(tuple(runs), problem)


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
            f"The index was made with the model {model.name}, not with {spec.name}."
            if model.name != spec.name
            else f"The index was made with another state of the model {model.name}.",
            hint="Run 'qmd embed' to embed everything with the new model.",
        )
    return model


def _nearest_in_scope(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    scope: Scope,
    cache: VectorCache | None,
) -> list[SemanticHit]:
    """As `nearest_documents`, without the documents that the query excludes."""
    depth = scope.depth
    if scope.exclusions is not None and depth is not None:
        depth += depth // 4  # most excluded words are in fewer documents: one scan is then enough
    while True:
        hits = nearest_documents(reader, model, question, scope.selection, depth, cache)
        if scope.exclusions is None:
            return hits
        admitted = [hit for hit in hits if scope.exclusions.admit(reader, hit.document_id)]
        if scope.depth is None or depth is None:
            return admitted
        if len(admitted) >= scope.depth or len(hits) < depth:
            return admitted[: scope.depth]
        depth *= 4


def nearest_documents(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    selection: Selection,
    limit: int | None,
    cache: VectorCache | None = None,
) -> list[SemanticHit]:
    """
    The documents nearest to a question, best first; ties by document id.

    Args:
        limit: Return at most this many; None for all.
        cache: The vectors in memory; None to scan the database.
    """
    if limit is None or limit * CHUNKS_PER_DOCUMENT > MAX_NEAREST:
        return best_chunks(list(reader.vectors.all(model, selection)), question)[:limit]
    if cache is not None:
        hits = _nearest_in_memory(reader, model, question, selection, limit, cache)
        if hits is not None:
            return hits
    return _nearest_in_index(reader, model, question, selection, limit)


def _nearest_in_memory(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    selection: Selection,
    limit: int,
    cache: VectorCache,
) -> list[SemanticHit] | None:
    """As `nearest_documents`; None if the vectors in memory cannot answer."""
    direction = _unit(question)
    chunks = max(LEAST, limit * CHUNKS_PER_DOCUMENT)
    while chunks <= MOST_CACHED:
        rows = cache.nearest(reader, model, direction, chunks, selection)
        if rows is None:
            return None
        hits = best_chunks(rows, question)
        if len(hits) >= limit:
            return hits[:limit]
        chunks *= 4  # a few long documents had all of these chunks
    return None


def _nearest_in_index(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    selection: Selection,
    limit: int,
) -> list[SemanticHit]:
    direction = _unit(question)
    chunks = max(LEAST, limit * CHUNKS_PER_DOCUMENT)
    while True:
        rows = reader.vectors.nearest(model, direction, chunks, selection)
        hits = best_chunks(rows, question)
        # A few long documents may have all of these chunks: then scan for more, if there are more.
        if len(hits) >= limit or len(rows) < chunks:
            return hits[:limit]
        if chunks >= MAX_NEAREST:
            rows = list(reader.vectors.all(model, selection))
            return best_chunks(rows, question)[:limit]
        chunks = min(chunks * 4, MAX_NEAREST)


def _unit(question: QuestionVector) -> NDArray[np.float32]:
    """The direction of the centred question: float32[dimension], unit norm."""
    import numpy as np

    direction: NDArray[np.float32] = question.centred / (
        np.linalg.norm(question.centred) or np.float32(1)
    )
    return direction
