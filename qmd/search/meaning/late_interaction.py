"""
Late interaction: compares each token of a question with the tokens of a chunk.

A vector says what a chunk is about as a whole. The state of a token says what it means where it
stands. Each token of the question is compared with that token of the chunk that is nearest to it,
so a chunk that answers one precise question is told from its neighbours on the same subject.

Source: Khattab and Zaharia, ColBERT, SIGIR 2020 (https://arxiv.org/abs/2004.12832), which calls
this MaxSim. Here the tokens of the question are weighted by how rare they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.inference.protocols import TokenStates
    from qmd.inference.token_codes import TokenProjection
    from qmd.store import Reader
    from qmd.store.models import StoredModel


def token_nearness(
    reader: Reader, model: StoredModel, question: TokenStates, chunk_ids: Collection[int]
) -> dict[int, float]:
    """
    Chunk id → how near the tokens of the chunk are to those of the question, -1..1.

    Chunks without token states are left out; all are, if the model has none.
    """
    from qmd.inference.token_projections import projection_of

    if not len(question.ids):
        return {}
    stored = reader.tokens.projection(model)
    projection = projection_of(
        model.fingerprint, None if stored is None else (stored.recipe, stored.data)
    )
    if projection is None:
        return {}
    codes = reader.tokens.of_chunks(model, sorted(chunk_ids), projection.recipe)
    return late_interaction(question, projection, codes)


def late_interaction(
    question: TokenStates, projection: TokenProjection, codes: Mapping[int, bytes]
) -> dict[int, float]:
    """
    The mean cosine of the tokens of a question to their nearest tokens in each text.

    The mean is weighted by `TokenProjection.weights`.

    Args:
        question: Has at least one token.
        projection: By which the codes were made.
        codes: A key for each text → its codes (`qmd.inference.token_codes`).

    Returns:
        Key → -1..1. Texts without tokens are left out.

    Raises:
        ValueError: Codes have an impossible length.
    """
    from qmd.inference.token_codes import decode, product

    coordinates = projection.project(question.states)
    weights = projection.weights(question.ids).tolist()
    total = fsum(weights)
    keys = [key for key, code in codes.items() if code]
    if not keys:
        return {}
    decoded = decode([codes[key] for key in keys])
    ends = [*decoded.starts[1:].tolist(), len(decoded.signs)]
    nearness = {}
    for key, start, end in zip(keys, decoded.starts.tolist(), ends, strict=True):
        cosines = product(coordinates, decoded.signs[start:end].T)
        nearest = cosines.max(axis=1).tolist()
        summands = [weight * cosine for weight, cosine in zip(weights, nearest, strict=True)]
        nearness[key] = fsum(summands) / total
    return nearness
