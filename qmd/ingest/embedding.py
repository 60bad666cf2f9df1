"""
Embeds the chunks that have no vector, with vectors from the cache or from the model.

Token states are made with the vectors. Vectors of earlier versions get theirs afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from qmd.ingest import token_states
from qmd.ingest.token_states import TextMaker, text_maker, texts_of
from qmd.store.sql.embeddings import ChunkText
from qmd.store.sql.models import StoredModel
from qmd.system import cancellation
from qmd.values import EmbedReport, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.store import Reader, Store, Writer
    from qmd.store.embedding_claims import EmbeddingClaims

PACE = "embedding_seconds"
"""The key of `qmd.store.sql.meta` under which the seconds for one new chunk are kept."""
TYPICAL_PACE_S = 0.04
"""Seconds for one chunk by the built-in model on a laptop, until there is a measured pace."""

#: Chunks in one transaction: about a second of work, which is the most that an interruption loses.
BATCH = 32
#: Seconds for which the last chunks are waited for while other processes embed them, and between
#: two looks at them. A process that hangs keeps its claims.
OTHERS_S = 60.0
LOOK_S = 0.2


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

    Other processes with a database on a server may embed at the same time, other chunks. The call
    ends when they, too, have made their vectors; but after a minute it leaves those to them.

    If the index has the vectors of another model, they answer searches until this model has all of
    its vectors and takes over. An interruption loses at most one batch.

    Raises:
        VectorsUnavailableError: sqlite-vec cannot be loaded here.
        ModelMismatchError: Another process has chosen a third model in the meantime.
        InferenceError: The model failed. The vectors made before are kept.
    """

    def prepare(writer: Writer) -> StoredModel:
        model = writer.models.begin(embedder.spec)
        if force:
            writer.embeddings.forget(model, collection_ids)
        return model

    if force:
        embedder.embed_passages(["?"])  # drop vectors only if the model works
    model = store.write(prepare)
    with closing(store.embedding_claims(model)) as claims:
        run = _Run(store, claims, embedder, model, collection_ids, progress)
        run.start()
        run.make_vectors()
        run.take_over()
        while run.make_token_states():
            run.make_vectors()  # new text comes first
            run.take_over()
    store.index_vectors()
    with store.reading() as reader:
        remaining = reader.embeddings.count_waiting(model, collection_ids)
    return EmbedReport(
        run.embedded, run.reused, remaining, embedder.spec.name, token_states=run.filled
    )


def left_s(reader: Reader, chunks: int) -> float:
    """The seconds that embedding so many chunks takes, at the pace of the latest run if one ran."""
    return chunks * float(reader.meta.get(PACE) or TYPICAL_PACE_S)


class _Run:
    """
    One call of `embed`.

    Attributes:
        embedded: Chunks whose vector the model has made.
        reused: Chunks whose vector was in the cache.
        filled: Chunks that had a vector, and have token states now.
    """

    def __init__(
        self,
        store: Store,
        claims: EmbeddingClaims,
        embedder: Embedder,
        model: StoredModel,
        collection_ids: Sequence[int],
        progress: ProgressCallback | None,
    ) -> None:
        self.embedded = self.reused = self.filled = 0
        self._store = store
        self._claims = claims
        self._embedder = embedder
        self._model = model
        self._collection_ids = collection_ids
        self._progress = progress or (lambda _: None)
        self._last_filled_id = 0
        self._done = self._total = 0
        self._maker: TextMaker | None = None
        self._pace_s: float | None = None  # for one chunk that the model embeds, on average

    def start(self) -> None:
        """Drop token states that no search can read, and count the work."""
        with self._store.reading() as reader:
            waiting = reader.embeddings.count_waiting(self._model, self._collection_ids)
            outdated = token_states.are_outdated(reader, self._model)
        if outdated:
            self._store.write(lambda writer: writer.tokens.forget(self._model))
        with self._store.reading() as reader:
            if token_states.are_expected(reader, self._model):
                waiting += reader.tokens.count_waiting(self._model, self._collection_ids)
        self._add_done(0, waiting)

    def make_vectors(self) -> None:
        """Make all missing vectors, with their token states; others may make some of them."""
        patience_s = OTHERS_S
        while (chunks := self._claims.take(BATCH, self._collection_ids)) is not None:
            if not chunks:  # others embed the last ones
                if patience_s <= 0:
                    break
                cancellation.check()
                self._add_done(0)
                sleep(LOOK_S)
                patience_s -= LOOK_S
                continue
            patience_s = OTHERS_S
            with self._store.reading() as reader:
                cached = reader.embeddings.cached(self._model, (chunk.hash for chunk in chunks))
            texts = texts_of(chunk for chunk in chunks if chunk.hash not in cached)
            maker = self._text_maker()
            began_s = perf_counter()
            vectors, codes = maker.make(texts)
            if texts:
                seconds = (perf_counter() - began_s) / len(texts)
                self._pace_s = (self._pace_s or seconds) * 0.75 + seconds * 0.25
            self._put(chunks, cached | vectors, maker, codes)
            self.embedded += len(texts)
            self.reused += len(chunks) - len(texts)
            self._add_done(len(chunks))

    def take_over(self) -> None:
        """Make the coming model the active one, if no vector is missing."""
        while self._is_complete():
            if self._store.write(lambda writer: writer.models.take_over(self._model)):
                return
            self.make_vectors()  # a document was added just now

    def _is_complete(self) -> bool:
        """Whether the model is the coming one and no vector is missing."""
        with self._store.reading() as reader:
            is_coming = reader.models.coming() == self._model
            return is_coming and not reader.embeddings.count_waiting(self._model)

    def make_token_states(self) -> bool:
        """
        Make token states for a batch of chunks that have only a vector.

        Returns:
            False if there is no such chunk, or the model gives no token states.
        """
        with self._store.reading() as reader:
            if not token_states.are_expected(reader, self._model):
                return False
            chunks = reader.tokens.waiting(
                self._model, BATCH, self._collection_ids, after=self._last_filled_id
            )
        if not chunks:
            return False
        self._last_filled_id = chunks[-1].id
        maker = self._text_maker()
        if maker.tokens is None:  # this state of the model, or of the index, gives none
            return False
        _vectors, codes = maker.make(texts_of(chunks))
        if self._store.write(lambda writer: self._put_codes(writer, maker, codes)):
            self.filled += len(chunks)
        self._add_done(len(chunks))
        return True

    def _add_done(self, chunks: int, total: int = 0) -> None:
        self._done += chunks
        self._total = max(self._total, self._done, total)
        self._progress(Progress("embed", self._done, self._total))

    def _text_maker(self) -> TextMaker:
        """Made when the first text arrives: it may load the weights."""
        if self._maker is None:
            self._maker = text_maker(self._store, self._embedder, self._model)
        return self._maker

    def _put(
        self,
        chunks: Sequence[ChunkText],
        vectors: dict[bytes, bytes],
        maker: TextMaker,
        codes: dict[bytes, bytes],
    ) -> None:
        places = [(chunk.id, chunk.hash) for chunk in chunks]

        def put(writer: Writer) -> None:
            writer.embeddings.put(self._model, places, vectors)
            if self._pace_s is not None:
                writer.meta.put(PACE, f"{self._pace_s:.4g}")
            self._put_codes(writer, maker, codes)

        self._store.write(put)

    def _put_codes(self, writer: Writer, maker: TextMaker, codes: dict[bytes, bytes]) -> bool:
        """Store codes, unless another process has begun codes of another recipe meanwhile."""
        if maker.tokens is None:
            return False
        if not maker.is_current(writer, self._model):
            self._maker = None  # from now on, codes are made as the other process makes them
            return False
        writer.tokens.put(self._model, codes)
        return True
