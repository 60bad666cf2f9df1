"""
Embeds the chunks that have no vector, with vectors from the cache or from the model.

The codes of token states are made with the vectors. Vectors of earlier versions get theirs
afterwards. When all that is done, English texts get their vector by the model of English.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from qmd import inference
from qmd.inference.embedded import build
from qmd.inference.protocols import Embedder, TokenEmbedder, english_embedder, token_embedder
from qmd.inference.token_codes import MARK, with_english
from qmd.parse.chunk import embedded_text
from qmd.store.sql.models import ENGLISH_UP_TO, ChunkText, StoredModel, StoredProjection
from qmd.store.sql.vectors import pack_vectors
from qmd.system import cancellation
from qmd.values import EmbedReport, Progress, ProgressCallback
from qmd.values.text import is_english

if TYPE_CHECKING:
    from qmd.inference.token_codes import TokenProjection
    from qmd.store import Reader, Store, Writer
    from qmd.store.store import EmbeddingClaims

#: The key of `qmd.store.sql.shared` under which the seconds for one new chunk are kept.
PACE = "embedding_seconds"
#: Seconds for one chunk by the built-in model on a laptop, until there is a measured pace.
TYPICAL_PACE_S = 0.04

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
        tell = progress or (lambda _: None)
        run = _Run(store, claims, embedder, model, collection_ids, tell)
        run.start()
        run.make_vectors()
        run.make_model_active()
        while run.make_token_states():
            run.make_vectors()  # new text comes first
            run.make_model_active()
        while run.make_vectors_of_english():
            run.make_vectors()
    store.index_vectors()
    remaining = store.read(lambda reader: reader.embeddings.count_waiting(model, collection_ids))
    english = english_embedder(embedder)
    return EmbedReport(
        run.embedded,
        run.reused,
        remaining,
        embedder.spec.name,
        token_states=run.filled,
        english=run.english,
        english_model=None if english is None else english.spec.name,
    )


def left_s(reader: Reader, chunks: int) -> float:
    """The seconds that embedding so many chunks takes, at the pace of the latest run if one ran."""
    return chunks * float(reader.meta.get(PACE) or TYPICAL_PACE_S)


@dataclass(eq=False)
class _Run:
    """
    One call of `embed`.

    Attributes:
        embedded: Chunks whose vector the model has made.
        reused: Chunks whose vector was in the cache.
        filled: Chunks that had a vector, and have token states now.
        english: Texts that got a vector by the model of English.
    """

    _store: Store
    _claims: EmbeddingClaims
    _embedder: Embedder
    _model: StoredModel
    _collection_ids: Sequence[int]
    _progress: ProgressCallback
    embedded: int = 0
    reused: int = 0
    filled: int = 0
    english: int = 0
    _last_filled_id: int = 0
    _done: int = 0
    _total: int = 0
    _maker: TextMaker | None = None
    _pace_s: float | None = None  # for one chunk that the model embeds, on average

    def start(self) -> None:
        """Drop token states that no search can read, and count the work."""
        with self._store.reading() as reader:
            waiting = reader.embeddings.count_waiting(self._model, self._collection_ids)
            outdated = codes_are_outdated(reader, self._model)
        if outdated:
            self._store.write(lambda writer: writer.tokens.forget(self._model))
        with self._store.reading() as reader:
            if should_have_states(reader, self._model):
                waiting += reader.tokens.count_waiting(self._model, self._collection_ids)
            if english_embedder(self._embedder) is not None:
                waiting += count_lacking_english(reader, self._model)
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

    def make_model_active(self) -> None:
        """Make the coming model the active one, if no vector is missing."""
        while self._is_complete():
            if self._store.write(lambda writer: writer.models.make_active(self._model)):
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
            if not should_have_states(reader, self._model):
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

    def make_vectors_of_english(self) -> bool:
        """
        Give a batch of chunks their vector by the model of English, those of them that are English.

        It goes through the chunks of all collections, whichever the run is for: how far it has come
        is one number in the database.

        Returns:
            False if no chunk is left, or there is no such model.
        """
        english = english_embedder(self._embedder)
        if english is None:
            return False
        with self._store.reading() as reader:
            chunks, codes = _lacking_english(reader, self._model)
        if not chunks:
            return False
        texts = {
            digest: text
            for digest, text in texts_of(chunks).items()
            if not codes[digest].startswith(MARK) and is_english(text)
        }
        vectors = english.embed_passages(list(texts.values())) if texts else ()
        with_vectors = {
            digest: with_english(codes[digest], vector)
            for digest, vector in zip(texts, vectors, strict=True)
        }

        def put(writer: Writer) -> None:
            # Not if another process has made other codes meanwhile.
            if writer.tokens.cached(self._model, codes) == codes:
                writer.tokens.put(self._model, with_vectors)
                writer.meta.put(f"{ENGLISH_UP_TO}{self._model.id}", str(chunks[-1].id))

        self._store.write(put)
        self.english += len(texts)
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


# --- what is stored of a text ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextMaker:
    """
    Makes vectors, and codes of token states if the model has any.

    Attributes:
        tokens: The same embedder if the model has token states and a projection for them.
        fitted: Text hash → vector and codes, of the texts that the projection was fitted on.
    """

    embedder: Embedder
    tokens: tuple[TokenEmbedder, TokenProjection] | None = None
    fitted: Mapping[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    @property
    def recipe(self) -> str:
        """Of the codes; empty if there are none."""
        return self.tokens[1].recipe if self.tokens else ""

    def is_current(self, reader: Reader, model: StoredModel) -> bool:
        """Whether the codes may be stored: not if another process has begun others meanwhile."""
        stored = reader.tokens.projection(model)
        return stored is not None and stored.recipe == self.recipe

    def make(self, texts: Mapping[bytes, str]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """
        Text hash → vector (float16[dimension]), and text hash → codes.

        Args:
            texts: Text hash → text.

        Raises:
            InferenceError: The model failed.
        """
        ready = {digest: self.fitted[digest] for digest in texts if digest in self.fitted}
        vectors = {digest: vector for digest, (vector, _) in ready.items()}
        codes = {digest: code for digest, (_, code) in ready.items()}
        new = {digest: text for digest, text in texts.items() if digest not in ready}
        if self.tokens is None:
            packed = pack_vectors(self.embedder.embed_passages(list(new.values())))
            return vectors | dict(zip(new, packed, strict=True)), codes
        embedder, projection = self.tokens
        exact, states = embedder.embed_passages_with_tokens(list(new.values()))
        vectors |= dict(zip(new, pack_vectors(exact), strict=True))
        codes |= {
            digest: inference.token_codes.encode(each, projection)
            for digest, each in zip(new, states, strict=True)
        }
        return vectors, codes


def text_maker(store: Store, embedder: Embedder, model: StoredModel) -> TextMaker:
    """
    Prepare to make vectors and, if the model has token states, their codes.

    The projection of a model that brings none is fitted now, if the index has enough chunks, and
    never changes afterwards.

    Raises:
        InferenceError: The model failed.
    """
    tokens = token_embedder(embedder)
    if tokens is None:
        return TextMaker(embedder)
    stored = store.read(lambda reader: reader.tokens.projection(model))
    projection = inference.token_codes.projection_of(
        model.fingerprint, model.dimension, stored and (stored.recipe, stored.data)
    )
    fitted: dict[bytes, tuple[bytes, bytes]] = {}
    if projection is None:
        projection, fitted = _fit(store, tokens)
        if projection is None:
            return TextMaker(embedder)
    form = StoredProjection(*inference.token_codes.stored_form(model.fingerprint, projection))

    def begin(writer: Writer) -> bool:
        if writer.tokens.projection(model) != stored:
            return False
        writer.tokens.begin(model, form)
        return True

    if form != stored and not store.write(begin):
        return text_maker(store, embedder, model)  # another process was first
    return TextMaker(embedder, (tokens, projection), fitted)


def _fit(
    store: Store, embedder: TokenEmbedder
) -> tuple[TokenProjection | None, dict[bytes, tuple[bytes, bytes]]]:
    """
    A projection, and what was made of the texts that it was fitted on: text hash → vector, codes.

    The projection is None if the index has too few texts.
    """
    token_codes = inference.token_codes
    chunks = store.read(lambda reader: reader.tokens.sample(token_codes.PASSAGES))
    texts = texts_of(chunks)
    if len(texts) < token_codes.FEWEST_PASSAGES:
        return None, {}
    vectors, states = embedder.embed_passages_with_tokens(list(texts.values()))
    if sum(len(each.ids) > 0 for each in states) < token_codes.FEWEST_PASSAGES:
        return None, {}
    projection = token_codes.fit_projection(states)
    codes = [token_codes.encode(each, projection) for each in states]
    return projection, dict(zip(texts, zip(pack_vectors(vectors), codes, strict=True), strict=True))


def codes_are_outdated(reader: Reader, model: StoredModel) -> bool:
    """Whether the codes of a model are of another version of the program, or cannot be read."""
    stored = reader.tokens.projection(model)
    if stored is None:
        return False
    projection = inference.token_codes.projection_of(
        model.fingerprint, model.dimension, (stored.recipe, stored.data)
    )
    return (
        projection is None
        or inference.token_codes.stored_form(model.fingerprint, projection) != stored
    )


def count_lacking_english(reader: Reader, model: StoredModel) -> int:
    """How many chunks nobody has looked at to give them a vector of English."""
    return reader.tokens.count_after(model, _english_up_to(reader, model))


def _english_up_to(reader: Reader, model: StoredModel) -> int:
    return int(reader.meta.get(f"{ENGLISH_UP_TO}{model.id}") or 0)


def _lacking_english(
    reader: Reader, model: StoredModel
) -> tuple[list[ChunkText], dict[bytes, bytes]]:
    """
    The next chunks that nobody has looked at for that, and the codes of their texts by hash.

    None comes after a chunk that still waits for its token states: that one would be passed over.
    """
    chunks = reader.tokens.after(model, _english_up_to(reader, model), BATCH)
    codes = reader.tokens.cached(model, [chunk.hash for chunk in chunks])
    ready = list(takewhile(lambda chunk: chunk.hash in codes, chunks))
    return ready, {chunk.hash: codes[chunk.hash] for chunk in ready}


def texts_of(chunks: Iterable[ChunkText]) -> dict[bytes, str]:
    """Text hash → the text that is embedded."""
    return {
        chunk.hash: embedded_text(chunk.title, chunk.heading_path, chunk.text) for chunk in chunks
    }


def should_have_states(reader: Reader, model: StoredModel) -> bool:
    """
    Whether chunks with a vector of this model should have token states.

    The default model's should. Another model's should once a projection was fitted to its states:
    before, nobody has seen whether it has any.
    """
    return model.fingerprint == build.FINGERPRINT or reader.tokens.projection(model) is not None
