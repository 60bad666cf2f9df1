"""Store → vectors: every chunk gets the vector of its text, from the cache or the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.ingest.new_document import embedded_text
from qmd.store.sqlite import embeddings, models, old_vectors, vectors
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.store import Store
from qmd.values import EmbedReport, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder

#: Chunks in one transaction: about a second of work, so an interruption loses no more.
BATCH = 32


def embed(
    store: Store,
    embedder: Embedder,
    *,
    collection_ids: Sequence[int] = (),
    force: bool = False,
    progress: ProgressCallback | None = None,
) -> EmbedReport:
    """
    Make the missing vectors (``force``: all), a batch a transaction, until none is missing.

    Where the index holds another model's vectors, those go on answering, until this one has
    all of its own and takes over; an interruption loses at most a batch.

    Raises:
        VectorsUnavailableError: sqlite-vec cannot be loaded here.
        ModelMismatchError: Another process has chosen a third model meanwhile.
        InferenceError: The model failed; what was embedded before is kept.
    """
    tick = progress or (lambda _: None)

    def prepare(connection: Connection) -> models.Model:
        old_vectors.remove(connection)
        model = models.begin(connection, embedder.spec)
        if force:
            embeddings.forget(connection, model, collection_ids)
        return model

    if force:
        embedder.embed_passages(["?"])  # vectors are given up only for a model that works
    model = store.write(prepare)
    with store.reading() as connection:
        total = embeddings.count_waiting(connection, model, collection_ids)
    embedded = reused = done = last = 0
    while True:
        tick(Progress("embed", done, total))
        with store.reading() as connection:
            waiting = embeddings.waiting(connection, model, BATCH, collection_ids, after=last)
            known = embeddings.cached(connection, model, (chunk.hash for chunk in waiting))
        if not waiting:
            break
        last = waiting[-1].id
        texts = {
            chunk.hash: embedded_text(chunk.title, chunk.heading_path, chunk.text)
            for chunk in waiting
            if chunk.hash not in known
        }
        made = embedder.embed_passages(list(texts.values()))
        new = dict(zip(texts, vectors.pack(made), strict=True))
        _store(store, model, waiting, known | new)
        embedded += len(new)
        reused += len(waiting) - len(new)
        done += len(waiting)
        total = max(total, done)
    with store.reading() as connection:
        remaining = embeddings.count_waiting(connection, model, collection_ids)
        coming = models.coming(connection) == model
    if coming and not remaining:
        done_with = store.write(lambda connection: models.take_over(connection, model))
        if not done_with and not collection_ids:  # a document came just now
            rest = embed(store, embedder, progress=progress)
            embedded, reused = embedded + rest.embedded, reused + rest.reused
            remaining = rest.remaining
    return EmbedReport(embedded, reused, remaining, embedder.spec.name)


def _store(
    store: Store,
    model: models.Model,
    chunks: Sequence[embeddings.Waiting],
    made: dict[bytes, bytes],
) -> None:
    places = [(chunk.id, chunk.hash) for chunk in chunks]
    store.write(lambda connection: embeddings.store(connection, model, places, made))
