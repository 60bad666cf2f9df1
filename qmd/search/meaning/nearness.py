"""
How near texts are to a question, from their exact vectors.

Vectors of sentence models lie in a narrow cone: those in its middle are near to any question,
those at its rim to none. So a part of the direction that all texts share is taken out of the
question: `nearness` = cosine - the part that such a text has in common with any. Mean MRR@10 of
five sets of known-item questions .427 to .487; nDCG@10 of nine collections .663 to .674.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store import Reader
    from qmd.store.models import StoredModel

#: This share of the mean vector is taken out of a question. 0.2 to 0.6 are about equally good.
CENTRED = 0.4
#: Vectors whose mean stands for all, and the fewest whose mean says anything.
SAMPLE, LEAST_SAMPLE = 256, 100
#: Chunks of a document that count for it as a whole.
WHOLE = 64


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """A document's best chunk; ``nearness`` orders, ``cosine`` is that of the bare question."""

    document: int
    chunk: int
    cosine: float
    nearness: float


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """
    A question's vector (float32[dimension], unit norm), and the same without a part of the
    direction that all texts share. nearness = ``centred`` · text + ``offset``.
    """

    vector: NDArray[np.float32]
    centred: NDArray[np.float32]
    offset: float


def bare(vector: NDArray[np.float32]) -> QuestionVector:
    """A vector (float32[dimension], unit norm) as it is."""
    return QuestionVector(vector, vector, 0.0)


def centre(reader: Reader, model: StoredModel, vector: NDArray[np.float32]) -> QuestionVector:
    """The question without a part of the mean text; bare where the index has too few texts."""
    import numpy as np

    sample = reader.vectors.sample(model, SAMPLE)
    if len(sample) < LEAST_SAMPLE:
        return bare(vector)
    mean = _matrix(sample).mean(axis=0, dtype=np.float64)
    shared = (CENTRED * mean).astype(np.float32)
    # The offset keeps nearness on the scale of cosines: for an average text they are equal.
    return QuestionVector(vector, vector - shared, float(CENTRED * (mean @ mean)))


def best_chunks(
    rows: Sequence[tuple[int, int, bytes]], question: QuestionVector
) -> list[SemanticHit]:
    """
    The nearest chunk of each document, nearest first, ties by id.

    Args:
        rows: Chunk id, document id and exact vector (float16[dimension]).
    """
    import numpy as np

    if not rows:
        return []
    matrix = _matrix([vector for _, _, vector in rows])
    nearness = (matrix @ question.centred + np.float32(question.offset)).tolist()
    cosines = (matrix @ question.vector).tolist()
    best: dict[int, SemanticHit] = {}
    for (chunk, document, _), cosine, near in zip(rows, cosines, nearness, strict=True):
        other = best.get(document)
        if other is None or (near, -chunk) > (other.nearness, -other.chunk):
            best[document] = SemanticHit(document, chunk, cosine, near)
    return sorted(best.values(), key=lambda hit: (-hit.nearness, hit.document))


def best_chunks_of(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    document_ids: Sequence[int],
) -> dict[int, SemanticHit]:
    """The nearest chunk of each of these documents, of long ones among the first `WHOLE`."""
    rows = reader.vectors.for_documents(model, document_ids, WHOLE)
    return {hit.document: hit for hit in best_chunks(rows, question)}


def mean_nearness(
    reader: Reader,
    model: StoredModel,
    question: QuestionVector,
    document_ids: Sequence[int],
) -> dict[int, float]:
    """Document → mean nearness of its chunks, of the first `WHOLE` in a long one."""
    import numpy as np

    rows = reader.vectors.for_documents(model, document_ids, WHOLE)
    if not rows:
        return {}
    matrix = _matrix([vector for _, _, vector in rows])
    nearness = (matrix @ question.centred + np.float32(question.offset)).tolist()
    by_document: dict[int, list[float]] = {}
    for (_, document, _), near in zip(rows, nearness, strict=True):
        by_document.setdefault(document, []).append(near)
    return {document: fsum(values) / len(values) for document, values in by_document.items()}


def relative_nearness(nearness: float, spec: ModelSpec) -> float:
    """Nearness on the model's scale: its off-topic level is 0, its on-topic level 1."""
    return (nearness - spec.cosine_low) / (spec.cosine_high - spec.cosine_low)


def nearness_score(nearness: float, spec: ModelSpec) -> float:
    """`relative_nearness`, within 0 and 1."""
    return min(1.0, max(0.0, relative_nearness(nearness, spec)))


def _matrix(packed: Sequence[bytes]) -> NDArray[np.float32]:
    """
    float16[dimension] each → float32[n, dimension].

    Raises:
        ValueError: Damaged ones: of different lengths, or not finite.
    """
    import numpy as np

    matrix: NDArray[np.float32] = (
        np.frombuffer(b"".join(packed), dtype=np.float16)
        .reshape(len(packed), -1)
        .astype(np.float32)
    )
    if not np.isfinite(matrix).all():
        raise ValueError("a stored vector is not finite")
    return matrix
