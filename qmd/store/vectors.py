"""The vectors of chunks: the nearest ones by a scan, and exact ones by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from qmd.store.models import StoredModel
from qmd.store.selection import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Where more chunks are asked for, an exact scan of all is no slower.
MAX_NEAREST = 4096


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """
    float32[n, dimension] of unit norm → n times float16[dimension] as bytes.

    Raises:
        ValueError: A vector is not finite; engines accept NaN and find it everywhere.
    """
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return [row.tobytes() for row in vectors.astype(np.float16)]


class Vectors(Protocol):
    """
    Searches the vectors of chunks.

    Rows are ``(chunk id, document id, vector)``; a vector is float16[dimension] of unit norm, as
    `pack_vectors` makes it.
    """

    def nearest(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """
        The chunks nearest to a query, before exact rescoring.

        Args:
            query: float32[dimension], unit norm.
            k: How many, at most `MAX_NEAREST`; fewer come only where fewer are selected.

        Returns:
            Rows, in no order; a caller ranks them by the exact vectors.
        """
        ...

    def all(self, model: StoredModel, selection: Selection) -> Iterable[tuple[int, int, bytes]]:
        """As `nearest`, for all chunks of the selected documents."""
        ...

    def count_chunks(self) -> int:
        """How many chunks there are, with a vector or still without: cheap."""
        ...

    def indexed_chunk_ids(self) -> NDArray[np.int64]:
        """The ids of all chunks that have a vector, ascending."""
        ...

    def with_collections(
        self, model: StoredModel, ids: Sequence[int]
    ) -> list[tuple[int, int, bytes]]:
        """Chunk id, collection id and exact vector of these chunks, by id, as far as there are."""
        ...

    def exact(
        self, model: StoredModel, ids: Sequence[int], selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for the chunks of these ids that lie in selected documents."""
        ...

    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        """Up to ``most`` of the model's vectors (float16[dimension]) from all over the index."""
        ...

    def for_documents(
        self, model: StoredModel, documents: Sequence[int], most: int
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for the first ``most`` chunks of these documents, by document and place."""
        ...

    def chunk_spans(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Chunk id → start_char, end_char, start_line."""
        ...

    def version(self) -> tuple[int, int]:
        """
        Tells when copies of the vectors are out of date: the first number grows when vectors that
        exist may differ, the second when some came or went.
        """
        ...

    def require_engine(self) -> str:
        """
        What compares vectors, with its version.

        Raises:
            VectorsUnavailableError: There is nothing here that can.
        """
        ...
