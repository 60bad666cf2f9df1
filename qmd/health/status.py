"""The state of the index in one value."""

from __future__ import annotations

from pathlib import Path

from qmd.store.sqlite import collections, embeddings, files, models, upkeep
from qmd.store.sqlite.library import Connection
from qmd.values import Status


def read(connection: Connection, path: Path) -> Status:
    counts = upkeep.counts(connection)
    model = models.active(connection)
    coming = models.coming(connection)
    missing = counts.chunks if coming is None else embeddings.count_waiting(connection, coming)
    known = collections.everything(connection)
    return Status(
        database=str(path),
        database_bytes=upkeep.size(connection),
        total_documents=counts.documents,
        needs_embedding=counts.needs_embedding,
        chunks=counts.chunks,
        chunks_embedded=counts.chunks_embedded,
        has_vector_index=counts.chunks_embedded > 0,
        model=model.name if model else None,
        collections=tuple(known),
        skipped=tuple(files.skipped(connection)),
        excluded=collections.excluded(connection),
        next_model=coming.name if coming else None,
        next_embedded=counts.chunks - missing,
        last_indexed=max((c.last_indexed for c in known if c.last_indexed), default=None),
    )
