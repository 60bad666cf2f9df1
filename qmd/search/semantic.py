"""Vector retrieval: nearest chunks, rescored with the exact vectors, best chunk per document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.errors import ModelMismatchError, VectorIndexMissingError
from qmd.model import ModelSpec
from qmd.search.bits import BitIndex
from qmd.sqlite import Connection
from qmd.store import vectors
from qmd.store.filters import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Chunks asked of the int8 index for each document wanted, at first.
CHUNKS_PER_DOCUMENT = 2
#: And never fewer, so that rescoring finds what int8 has ranked too low. sqlite-vec's time grows
#: with the number asked for: at 100,000 chunks 22 ms for 50, 32 for 100, 71 for 256.
LEAST = 100
#: Candidates that the codes in memory give: so many, and so many more for each document wanted.
CODED, CODED_PER_DOCUMENT = 500, 5
MOST_CODED = 20_000


@dataclass(frozen=True, slots=True)
class SemanticHit:
    document: int
    chunk: int
    cosine: float


def require_index(connection: Connection, spec: ModelSpec | None) -> vectors.Model:
    """
    The model of the vector index.

    Raises:
        VectorIndexMissingError: Nothing was embedded yet.
        ModelMismatchError: The index holds vectors of another model than ``spec``.
        VectorsUnavailableError: sqlite-vec cannot be loaded here.
    """
    model = vectors.active(connection)
    if model is None or not vectors.has_vectors(connection):
        raise VectorIndexMissingError
    vectors.load(connection)
    if spec is not None and model.fingerprint != spec.fingerprint:
        raise ModelMismatchError(
            f"The index was made with the model {model.name}, not with {spec.name}.",
            hint="Run 'qmd embed' to embed everything with the new model.",
        )
    return model


def search(
    connection: Connection,
    model: vectors.Model,
    query: NDArray[np.float32],
    where: Where,
    limit: int | None,
    bits: BitIndex | None = None,
) -> list[SemanticHit]:
    """
    The ``limit`` nearest documents (None: all), best first, ties by id.

    Args:
        query: float32[dimension], unit norm.
        bits: Codes that are kept between searches of the same database.
    """
    import numpy as np

    if limit is None or limit * CHUNKS_PER_DOCUMENT > vectors.MAX_K:
        hits = _score(list(vectors.everything(connection, model, where)), query)
        return hits if limit is None else hits[:limit]
    if bits is not None:
        candidates = CODED + CODED_PER_DOCUMENT * limit
        while candidates <= MOST_CODED:
            found = bits.nearest(connection, model, query, candidates, where)
            if found is None:
                break
            hits = _score(found, query)
            if len(hits) >= limit:
                return hits[:limit]
            candidates *= 4  # long documents took all places
    coarse = vectors.quantize(vectors.pack(query[np.newaxis, :])[0])
    k = max(LEAST, limit * CHUNKS_PER_DOCUMENT)
    while True:
        rows = vectors.nearest(connection, model, coarse, k, where)
        hits = _score(rows, query)
        # Long documents may take all places: then ask for more, as long as there are more.
        if len(hits) >= limit or len(rows) < k:
            return hits[:limit]
        if k >= vectors.MAX_K:
            return _score(list(vectors.everything(connection, model, where)), query)[:limit]
        k = min(k * 4, vectors.MAX_K)


def _score(rows: list[tuple[int, int, bytes]], query: NDArray[np.float32]) -> list[SemanticHit]:
    import numpy as np

    if not rows:
        return []
    matrix = np.frombuffer(b"".join(vector for _, _, vector in rows), dtype=np.float16)
    cosines = matrix.reshape(len(rows), -1).astype(np.float32) @ query
    best: dict[int, SemanticHit] = {}
    for (chunk, document, _), cosine in zip(rows, cosines.tolist(), strict=True):
        known = best.get(document)
        if known is None or (cosine, -chunk) > (known.cosine, -known.chunk):
            best[document] = SemanticHit(document, chunk, cosine)
    return sorted(best.values(), key=lambda hit: (-hit.cosine, hit.document))


def score(cosine: float, spec: ModelSpec) -> float:
    """A cosine as 0..1: the model's off-topic level is 0, its on-topic level 1."""
    return min(1.0, max(0.0, (cosine - spec.cosine_low) / (spec.cosine_high - spec.cosine_low)))
