"""Shares the chunks that wait for a vector among all processes with a database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from qmd.store.embedding_claims import DOCUMENTS, EmbeddingClaims
from qmd.store.postgres.library import CLAIMS, Connection, Error, connect, is_lost, translate

if TYPE_CHECKING:
    from qmd.store.postgres.store import PostgresStore
    from qmd.store.sql.embeddings import ChunkText, WaitingChunk
    from qmd.store.sql.models import StoredModel
    from qmd.values.location import ServerDatabase


class PostgresEmbeddingClaims(EmbeddingClaims):
    """
    Several processes embed at the same time, each other chunks, by advisory locks.

    A process that ends, even if it is killed, claims nothing any more: others get its chunks.

    A lock is tried without waiting for it, as ``FOR UPDATE SKIP LOCKED`` does, and the server
    releases it when the connection ends. But a lock of a row would hold up whoever indexes the
    document meanwhile, for as long as the model computes. What is locked is the hash of a text, so
    that no text is embedded twice because two documents have it.
    """

    def __init__(self, store: PostgresStore, model: StoredModel) -> None:
        super().__init__(store, model)
        self._location: ServerDatabase = store.location
        self._connection: Connection | None = None

    def take(self, limit: int, collection_ids: Sequence[int] = ()) -> list[ChunkText] | None:
        self._release()
        some_wait = False
        for outdated in (False, True):
            last: WaitingChunk | None = None
            while True:
                with self._store.reading() as reader:
                    waiting = reader.embeddings.newest_waiting(
                        self._model, DOCUMENTS, collection_ids, last, outdated=outdated
                    )
                if not waiting:
                    break
                some_wait, last = True, waiting[-1]
                claimed = self._lock(waiting, limit)
                with self._store.reading() as reader:  # now, others may have embedded some
                    chunks = reader.embeddings.waiting_among(self._model, claimed)
                if chunks:
                    return chunks
        return [] if some_wait else None

    def _lock(self, waiting: Sequence[WaitingChunk], limit: int) -> list[int]:
        """Lock the texts of so many chunks that nobody has locked; returns the chunks' ids."""
        try:
            if self._connection is None:
                self._connection = connect(self._location)
            # Materialized, so that no row is tried beyond the limit.
            rows = self._connection.execute(
                "WITH waiting AS MATERIALIZED (SELECT * FROM unnest(%s::bigint[], %s::text[])"
                " AS w (id, hash)) SELECT id FROM waiting"
                " WHERE pg_try_advisory_lock(%s, hashtext(current_schema() || hash)) LIMIT %s",
                [
                    [chunk.id for chunk in waiting],
                    [chunk.hash.hex() for chunk in waiting],
                    CLAIMS,
                    limit,
                ],
            ).fetchall()
        except Error as error:
            self.close()
            raise translate(error, self._location) from error
        return [chunk_id for (chunk_id,) in rows]

    def _release(self) -> None:
        if self._connection is not None and is_lost(self._connection):
            self.close()
        if self._connection is not None:
            try:
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            except Error:  # the server has released them at the end of the connection
                self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Error):
                connection.close()
