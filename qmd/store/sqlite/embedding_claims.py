"""Hands out the chunks of a database file that have no vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.sql.embeddings import ChunkText
    from qmd.store.sql.models import StoredModel
    from qmd.store.sqlite.store import SqliteStore


class SqliteEmbeddingClaims:
    """
    `qmd.store.embedding_claims.EmbeddingClaims` for a file: each chunk once, in order.

    Chunks with the vector of an earlier title come when none is without a vector.
    """

    def __init__(self, store: SqliteStore, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._last_ids = {False: 0, True: 0}  # of the chunks without a vector, and outdated ones

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
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
        """There is nothing to release."""
