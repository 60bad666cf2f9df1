"""Embed the chunks that have no vector, with vectors from the cache or from the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.ingest.new_document import embedded_text
from qmd.store.embeddings import WaitingChunk
from qmd.store.models import StoredModel
from qmd.store.vectors import pack_vectors
from qmd.values import EmbedReport, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.store import Store, Writer

#: Chunks in one transaction: about a second of work, which is the most that an interruption loses.
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
    Make the missing vectors (all if ``force``), with a transaction for each batch.

    If the index has the vectors of another model, they answer searches until this model has all of
    its vectors and takes over. An interruption loses at most one batch.

    Raises:
        VectorsUnavailableError: sqlite-vec cannot be loaded here.
        ModelMismatchError: Another process has chosen a third model in the meantime.
        InferenceError: The model failed. The vectors made before are kept.
    """
    tick = progress or (lambda _: None)

    def prepare(writer: Writer) -> StoredModel:
        writer.upkeep.remove_misplaced_vectors()
        model = writer.models.begin(embedder.spec)
        if force:
            writer.embeddings.forget(model, collection_ids)
        return model

    if force:
        embedder.embed_passages(["?"])  # drop vectors only if the model works
    model = store.write(prepare)
    with store.reading() as reader:
        total = reader.embeddings.count_waiting(model, collection_ids)
    embedded = reused = done = last_id = 0
    while True:
        tick(Progress("embed", done, total))
        with store.reading() as reader:
            waiting = reader.embeddings.waiting(model, BATCH, collection_ids, after=last_id)
            cached = reader.embeddings.cached(model, (chunk.hash for chunk in waiting))
        if not waiting:
            break
        last_id = waiting[-1].id
        texts = {
            chunk.hash: embedded_text(chunk.title, chunk.heading_path, chunk.text)
            for chunk in waiting
            if chunk.hash not in cached
        }
        vectors = embedder.embed_passages(list(texts.values()))
        new = dict(zip(texts, pack_vectors(vectors), strict=True))
        _store(store, model, waiting, cached | new)
        embedded += len(new)
        reused += len(waiting) - len(new)
        done += len(waiting)
        total = max(total, done)
    with store.reading() as reader:
        remaining = reader.embeddings.count_waiting(model, collection_ids)
        coming = reader.models.coming() == model
    if coming and not remaining:
        is_active = store.write(lambda writer: writer.models.take_over(model))
        if not is_active and not collection_ids:  # a document was added just now
            report = embed(store, embedder, progress=progress)
            embedded, reused = embedded + report.embedded, reused + report.reused
            remaining = report.remaining
    return EmbedReport(embedded, reused, remaining, embedder.spec.name)


def _store(
    store: Store,
    model: StoredModel,
    chunks: Sequence[WaitingChunk],
    vectors_by_hash: dict[bytes, bytes],
) -> None:
    places = [(chunk.id, chunk.hash) for chunk in chunks]
    store.write(lambda writer: writer.embeddings.put(model, places, vectors_by_hash))
