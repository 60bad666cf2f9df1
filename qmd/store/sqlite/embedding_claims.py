"""Hands out the chunks of a database file that have no vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.embeddings import ChunkText
    from qmd.store.models import StoredModel
    from qmd.store.sqlite.store import SqliteStore


class SqliteEmbeddingClaims:
    """`qmd.store.embedding_claims.EmbeddingClaims` for a file: each chunk once, in order."""

    def __init__(self, store: SqliteStore, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._last_id = 0

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        with self._store.reading() as reader:
            chunks = reader.embeddings.waiting(
                self._model, limit, collection_ids, after=self._last_id
            )
        if not chunks:
            return None
        self._last_id = chunks[-1].id
        return chunks

    def close(self) -> None:
        """There is nothing to release."""
