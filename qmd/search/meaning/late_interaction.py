"""
Late interaction: compares each token of a question with the tokens of a chunk.

A vector says what a chunk is about as a whole. The state of a token says what it means where it
stands. Each token of the question is compared with that token of the chunk that is nearest to it,
so a chunk that answers one precise question is told from its neighbours on the same subject.

Source: Khattab and Zaharia, ColBERT, SIGIR 2020 (https://arxiv.org/abs/2004.12832), which calls
this MaxSim. Here the tokens of the question are weighted by how rare they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from time import monotonic
from typing import TYPE_CHECKING

from qmd.inference.protocols import is_in_memory, token_embedder
from qmd.inference.token_codes import decode, encode, is_sound, product, projection_of
from qmd.parse.chunk import embedded_text

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, TokenStates
    from qmd.inference.token_codes import TokenProjection
    from qmd.store import Reader
    from qmd.store.sql.models import StoredModel

#: Seconds that a query spends on token states which are not stored. The default model takes 0.05 s
#: a chunk, a large one 2 s. The first chunk may take longer.
COMPUTED_S = 1.0


def projection_for(reader: Reader, model: StoredModel) -> TokenProjection | None:
    """How the codes of a model's token states are made; None if the model has none."""
    stored = reader.tokens.projection(model)
    return projection_of(
        model.fingerprint,
        model.dimension,
        None if stored is None else (stored.recipe, stored.data),
    )


def token_nearness(
    reader: Reader,
    model: StoredModel,
    tokens: TokenStates,
    chunk_ids: Sequence[int],
    embedder: Embedder | None = None,
    most: int = 0,
    *,
    clock: Callable[[], float] = monotonic,
) -> dict[int, float]:
    """
    Chunk id → how near the tokens of the chunk are to those of the question, -1..1.

    Chunks without token states are left out; all are, if the model has none.

    Args:
        chunk_ids: The most important first.
        embedder: Computes the token states of the first ``most`` chunks that have none stored,
            or of as many as `COMPUTED_S` allows, at least one.
        clock: Returns the time in seconds.

    Raises:
        InferenceError: The embedder failed.
    """
    projection = projection_for(reader, model)
    if projection is None or not len(tokens.ids):
        return {}
    stored = reader.tokens.of_chunks(model, chunk_ids, projection.recipe)
    codes = {chunk_id: code for chunk_id, code in stored.items() if is_sound(code)}
    missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in codes][:most]
    if missing and embedder is not None:
        codes |= _compute_codes(reader, projection, missing, embedder, clock)
    return late_interaction(tokens, projection, codes)


def _compute_codes(
    reader: Reader,
    projection: TokenProjection,
    chunk_ids: Sequence[int],
    embedder: Embedder,
    clock: Callable[[], float],
) -> dict[int, bytes]:
    """
    Chunk id → codes of the text, from a run of the model.

    Only by a model whose weights are in memory: to load them would take longer than the query. The
    first chunk tells how long one takes; as many others follow as should fit into `COMPUTED_S`.
    """
    by_token = token_embedder(embedder) if is_in_memory(embedder) else None
    if by_token is None:
        return {}
    chunks = {chunk.id: chunk for chunk in reader.tokens.texts(chunk_ids)}
    texts = {
        chunk_id: embedded_text(chunk.title, chunk.heading_path, chunk.text)
        for chunk_id in chunk_ids
        if (chunk := chunks.get(chunk_id)) is not None
    }
    began = clock()
    _vectors, states = by_token.embed_passages_with_tokens(list(texts.values())[:1])
    first_s = clock() - began
    others = int((COMPUTED_S - first_s) / first_s) if first_s > 0 else len(texts)
    if others > 0:
        _vectors, more = by_token.embed_passages_with_tokens(list(texts.values())[1 : 1 + others])
        states += more
    return {
        chunk_id: encode(each, projection) for chunk_id, each in zip(texts, states, strict=False)
    }


def late_interaction(
    tokens: TokenStates, projection: TokenProjection, codes: Mapping[int, bytes]
) -> dict[int, float]:
    """
    The mean cosine of the tokens of a question to their nearest tokens in each chunk.

    The mean is weighted by `TokenProjection.weights`.

    Args:
        tokens: Of the question; has at least one token.
        projection: By which the codes were made.
        codes: Chunk id → the codes of its text (`qmd.inference.token_codes`).

    Returns:
        Chunk id → -1..1. Chunks without tokens are left out.

    Raises:
        ValueError: Codes have an impossible length.
    """
    coordinates = projection.project_question(tokens.states)
    weights = projection.weights(tokens.ids).tolist()
    total = fsum(weights)
    chunk_ids = [chunk_id for chunk_id, packed in codes.items() if packed]
    if not chunk_ids:
        return {}
    decoded = decode([codes[chunk_id] for chunk_id in chunk_ids])
    ends = [*decoded.starts[1:].tolist(), len(decoded.signs)]
    nearness = {}
    for chunk_id, start, end in zip(chunk_ids, decoded.starts.tolist(), ends, strict=True):
        cosines = product(coordinates, decoded.signs[start:end].T)
        nearest = cosines.max(axis=1).tolist()
        summands = [weight * cosine for weight, cosine in zip(weights, nearest, strict=True)]
        nearness[chunk_id] = fsum(summands) / total
    return nearness
