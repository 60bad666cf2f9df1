"""The vectors of chunks: a scan for the nearest, and the exact vectors of given chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from qmd import libraries
from qmd.store.selection import Selection
from qmd.store.sql.models import StoredModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: `Vectors.nearest` returns at most this many chunks; for more, `Vectors.all` is as fast.
MAX_NEAREST = 4096


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """
    Vectors in the form that is stored: n times float16[dimension], as bytes.

    Args:
        vectors: float32[n, dimension], unit norm.

    Raises:
        ValueError: A vector is not finite. (Engines accept NaN and return it for every query.)
    """
    if not libraries.np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return [row.tobytes() for row in vectors.astype(libraries.np.float16)]


class Vectors(Protocol):
    """
    Searches the vectors of chunks.

    Rows are ``(chunk id, document id, vector)``. A vector is float16[dimension] of unit norm, in
    the form of `pack_vectors`.
    """

    def nearest(
        self, model: StoredModel, query: NDArray[np.float32], k: int, selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """
        The chunks nearest to a query, before exact rescoring.

        Args:
            query: float32[dimension], unit norm.
            k: How many rows to return, at most `MAX_NEAREST`; fewer are returned only if the
                selection has fewer.

        Returns:
            Rows in no order, with the exact vectors, by which a caller ranks them.
        """
        ...

    def all(self, model: StoredModel, selection: Selection) -> Iterable[tuple[int, int, bytes]]:
        """As `nearest`, for all chunks of the selected documents."""
        ...

    def count_chunks(self) -> int:
        """How many chunks there are, with or without a vector. The call is cheap."""
        ...

    def indexed_chunk_ids(self) -> NDArray[np.int64]:
        """The ids of all chunks that have a vector: int64[n], ascending."""
        ...

    def with_places(
        self, model: StoredModel, ids: Sequence[int]
    ) -> list[tuple[int, int, int, bytes]]:
        """
        Rows ``(chunk id, document id, collection id, vector)`` of these chunks, by chunk id.

        Chunks that do not exist are left out.
        """
        ...

    def rounded(
        self, model: StoredModel, after: int, limit: int
    ) -> list[tuple[int, int, int, NDArray[np.float32]]]:
        """
        As `with_places`, for chunks with ids above ``after``; the vectors are less exact.

        Reading all vectors so takes a fifth of the time. Each is float32[dimension].
        """
        ...

    def waiting_chunk_ids(self) -> list[int]:
        """The ids of the chunks that have no vector."""
        ...

    def embedded_since(self, last_id: int, waiting_ids: Sequence[int]) -> list[int]:
        """The ids above ``last_id``, and those of ``waiting_ids``, that have a vector, sorted."""
        ...

    def exact(
        self, model: StoredModel, ids: Sequence[int], selection: Selection
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for those chunks of these ids whose documents are selected."""
        ...

    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        """
        At most ``most`` vectors (float16[dimension]), chosen by the hashes of their texts.

        So they are spread over the index, and all engines choose the same.
        """
        ...

    def for_documents(
        self, model: StoredModel, documents: Sequence[int], most: int
    ) -> list[tuple[int, int, bytes]]:
        """As `nearest`, for the first ``most`` chunks of each document, in the order of the ids."""
        ...

    def chunk_spans(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Chunk id → start_char, end_char and start_line of the chunk in its document's text."""
        ...

    def version(self) -> tuple[int, int]:
        """
        Two counters that tell when a copy of the vectors is out of date.

        The first grows when existing vectors may have changed, the second when vectors were added
        or removed.
        """
        ...

    def require_engine(self) -> str:
        """
        The name and version of the library that compares vectors.

        Raises:
            VectorsUnavailableError: It cannot be loaded on this machine.
        """
        ...
