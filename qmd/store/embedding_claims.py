"""Which of the chunks without a vector a process embeds, so that no other embeds them, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from qmd.store.sql.embeddings import ChunkText


class EmbeddingClaims(Protocol):
    """
    Hands out chunks that wait for a vector of one model. For one thread.

    With a database on a server, several processes embed at the same time, each other chunks. A
    process that ends, even if it is killed, claims nothing any more: others get its chunks.

    Processes with a file may embed the same chunks; one of their vectors is kept.
    """

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        """
        Claim chunks, sorted by id. Those of the call before are not claimed any more.

        Args:
            limit: Claim at most this many.
            collection_ids: Only chunks of these collections; empty for all.

        Returns:
            None if no chunk waits; no chunks while others have claimed all that wait.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
            StoreError: The server cannot be reached.
        """
        ...

    def close(self) -> None:
        """Claim nothing any more. May be called twice."""
        ...
