"""The chunks that have no vector yet, and the cache of vectors by the hash of their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from qmd.store.models import StoredModel


class ChunkText(NamedTuple):
    """A chunk with what is embedded of it: title, heading path and text together."""

    id: int
    hash: bytes
    title: str
    heading_path: str
    text: str


class Embeddings(Protocol):
    """Reads which chunks wait for a vector, and cached vectors by the hash of their text."""

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[ChunkText]:
        """
        Chunks that have no vector of this model yet, sorted by id.

        Args:
            limit: Return at most this many.
            collection_ids: Only chunks of these collections; empty for all.
            after: Only chunks with a greater id.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        """
        How many chunks have no vector of a model.

        ``model`` None stands for the active model; without one, all chunks are counted.
        """
        ...

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash → vector (float16[dimension], unit norm), for the texts embedded before."""
        ...


class EmbeddingsWriter(Embeddings, Protocol):
    """Stores vectors."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        """
        Drop the vectors of all chunks, or of those in some collections, so that they wait again.

        Chunks of other collections with the same text share the vector, so they wait too.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

    def put(
        self,
        model: StoredModel,
        chunks: Sequence[tuple[int, bytes]],
        vectors: dict[bytes, bytes],
    ) -> int:
        """
        Store vectors in the cache, and give them to their chunks.

        Args:
            chunks: Pairs of chunk id and text hash. A chunk that was removed or changed meanwhile
                is passed over.
            vectors: Text hash → vector (float16[dimension], unit norm).

        Returns:
            How many chunks got a vector.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...
