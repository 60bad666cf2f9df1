"""Which chunks wait for a vector, and the vectors that were made of their texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from qmd.store.models import StoredModel


class WaitingChunk(NamedTuple):
    """A chunk without a vector, with all that its embedded text is made of."""

    id: int
    hash: bytes
    title: str
    heading_path: str
    text: str


class Embeddings(Protocol):
    """Reads what waits, and vectors by the hash of the embedded text."""

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[WaitingChunk]:
        """
        Chunks without this model's vector whose id is above ``after``, by id.

        Raises:
            ModelMismatchError: It is neither the active nor the coming model.
        """
        ...

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        """How many chunks lack a model's vector; None for the active one, or any."""
        ...

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash → float16[dimension], for those that were embedded before."""
        ...


class EmbeddingsWriter(Embeddings, Protocol):
    """Stores vectors."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        """
        Make all chunks (of the collections) wait again, and drop their cached vectors.

        Chunks of other collections with the same text wait too: they share the vector.

        Raises:
            ModelMismatchError: It is neither the active nor the coming model.
        """
        ...

    def put(
        self,
        model: StoredModel,
        chunks: Sequence[tuple[int, bytes]],
        vectors: dict[bytes, bytes],
    ) -> int:
        """
        Put vectors into cache and index.

        Args:
            chunks: Chunk id and text hash. A chunk that has gone meanwhile, or whose text has
                changed, is passed over.
            vectors: Hash → float16[dimension] of unit norm.

        Returns:
            How many chunks got their vector.

        Raises:
            ModelMismatchError: It is neither the active nor the coming model.
        """
        ...
