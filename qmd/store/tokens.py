"""The token states of embedded texts, as codes that the store does not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from qmd.store.embeddings import ChunkText
from qmd.store.models import StoredModel


class StoredProjection(NamedTuple):
    """
    How the codes of a model's token states were made.

    Attributes:
        recipe: Names the projection and the form of the codes.
        code_bytes: The bytes of one token.
        data: The projection itself; empty if it is part of the program.
    """

    recipe: str
    code_bytes: int
    data: bytes


class Tokens(Protocol):
    """Reads the codes of token states: of each embedded text one row, if it has been made."""

    def projection(self, model: StoredModel) -> StoredProjection | None:
        """How the codes of a model were made; None if none were made yet."""
        ...

    def of_chunks(
        self, model: StoredModel, chunk_ids: Sequence[int], recipe: str
    ) -> dict[int, bytes]:
        """
        Chunk id → codes of the text of the chunk.

        A chunk is left out if its codes are missing, were made by another recipe, or have an
        impossible length, which damage leaves.
        """
        ...

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash of a text → codes, as `Embeddings.cached` has its vectors."""
        ...

    def texts(self, chunk_ids: Sequence[int]) -> list[ChunkText]:
        """These chunks with their texts, sorted by id; those that do not exist are left out."""
        ...

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[ChunkText]:
        """
        Chunks that have a vector of this model but no token states, sorted by id.

        Args:
            limit: Return at most this many.
            collection_ids: Only chunks of these collections; empty for all.
            after: Only chunks with a greater id.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

    def count_waiting(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> int:
        """How many chunks `waiting` has; a scan of all chunks. Raises as `waiting`."""
        ...

    def count(self) -> int:
        """How many chunks have token states of the active model; a scan of all chunks."""
        ...

    def sample(self, most: int) -> list[ChunkText]:
        """At most so many chunks, with a vector or without, spread evenly over the index."""
        ...


class TokensWriter(Tokens, Protocol):
    """Stores token states."""

    def begin(self, model: StoredModel, projection: StoredProjection) -> None:
        """Record how codes will be made. Codes that were made otherwise are dropped."""
        ...

    def forget(self, model: StoredModel) -> None:
        """Drop all codes of a model."""
        ...

    def put(self, model: StoredModel, codes: Mapping[bytes, bytes]) -> int:
        """
        Keep codes by the hash of their text, for texts that have a vector of this model.

        Returns:
            How many were stored.
        """
        ...
