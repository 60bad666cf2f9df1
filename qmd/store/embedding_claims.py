"""Which of the chunks without a vector a process embeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.reader import Reader
    from qmd.store.sql.embeddings import ChunkText
    from qmd.store.sql.models import StoredModel
    from qmd.store.store import Store

#: The chunks of so many documents are put in order at once. A note that is saved while others
#: wait comes after these.
DOCUMENTS = 128


class EmbeddingClaims:
    """
    Hands out chunks that wait for a vector of one model. For one thread.

    Those of the notes that were changed last come first: people ask for these. Processes with a
    file may embed the same chunks; one of their vectors is kept.
    """

    def __init__(self, store: Store, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._next_ids: deque[int] = deque()

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        """
        Claim chunks, sorted by id. Those of the call before are not claimed any more, and come
        again if they were given no vector.

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
            for outdated in (False, True):
                while self._next_ids or self._look(reader, collection_ids, outdated):
                    ids = [self._next_ids.popleft() for _ in range(min(limit, len(self._next_ids)))]
                    chunks = reader.embeddings.waiting_among(self._model, ids)
                    if chunks:  # else others have embedded them meanwhile
                        return chunks
        return None

    def _look(self, reader: Reader, collection_ids: Sequence[int], outdated: bool) -> bool:
        """Whether chunks wait. The newest of them come next."""
        waiting = reader.embeddings.newest_waiting(
            self._model, DOCUMENTS, collection_ids, outdated=outdated
        )
        self._next_ids.extend(chunk.id for chunk in waiting)
        return bool(waiting)

    def close(self) -> None:
        """Claim nothing any more. May be called twice."""
