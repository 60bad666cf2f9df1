"""Which of the chunks without a vector a process embeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.sql.embeddings import ChunkText
    from qmd.store.sql.models import StoredModel
    from qmd.store.store import Store


class EmbeddingClaims:
    """
    Hands out chunks that wait for a vector of one model, each once. For one thread.

    Processes with a file may embed the same chunks; one of their vectors is kept.
    """

    def __init__(self, store: Store, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._last_ids = {False: 0, True: 0}  # of the chunks without a vector, and outdated ones

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        """
        Claim chunks, sorted by id. Those of the call before are not claimed any more.

        Chunks with the vector of an earlier title come when none is without a vector.

        Args:
            limit: Claim at most this many.
            collection_ids: Only chunks of these collections; empty for all.

        Returns:
            None if no chunk waits; no chunks while others have claimed all that wait.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
            StoreError: The server cannot be reached.
        """
        with self._store.reading() as reader:
            for outdated, last_id in self._last_ids.items():
                chunks = reader.embeddings.waiting(
                    self._model, limit, collection_ids, last_id, outdated=outdated
                )
                if chunks:
                    self._last_ids[outdated] = chunks[-1].id
                    return chunks
        return None

    def close(self) -> None:
        """Claim nothing any more. May be called twice."""
