"""Makes what is stored of a text: its vector, and the codes of its token states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qmd import inference
from qmd.inference.embedded import build
from qmd.inference.protocols import token_embedder
from qmd.parse.chunk import embedded_text
from qmd.store.sql.tokens import StoredProjection
from qmd.store.sql.vectors import pack_vectors

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, TokenEmbedder
    from qmd.inference.token_codes import TokenProjection
    from qmd.store import Reader, Store, Writer
    from qmd.store.sql.embeddings import ChunkText
    from qmd.store.sql.models import StoredModel


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
    with store.reading() as reader:
        stored = reader.tokens.projection(model)
    projection = inference.token_projections.projection_of(
        model.fingerprint, model.dimension, stored and (stored.recipe, stored.data)
    )
    fitted: dict[bytes, tuple[bytes, bytes]] = {}
    if projection is None:
        projection, fitted = _fit(store, tokens)
        if projection is None:
            return TextMaker(embedder)
    form = StoredProjection(*inference.token_projections.stored_form(model.fingerprint, projection))

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
    token_projections = inference.token_projections
    with store.reading() as reader:
        chunks = reader.tokens.sample(token_projections.PASSAGES)
    texts = texts_of(chunks)
    if len(texts) < token_projections.FEWEST_PASSAGES:
        return None, {}
    vectors, states = embedder.embed_passages_with_tokens(list(texts.values()))
    if sum(len(each.ids) > 0 for each in states) < token_projections.FEWEST_PASSAGES:
        return None, {}
    projection = token_projections.fit(states)
    codes = [inference.token_codes.encode(each, projection) for each in states]
    return projection, dict(zip(texts, zip(pack_vectors(vectors), codes, strict=True), strict=True))


def are_outdated(reader: Reader, model: StoredModel) -> bool:
    """Whether the codes of a model are of another version of the program, or cannot be read."""
    stored = reader.tokens.projection(model)
    if stored is None:
        return False
    projection = inference.token_projections.projection_of(
        model.fingerprint, model.dimension, (stored.recipe, stored.data)
    )
    return (
        projection is None
        or inference.token_projections.stored_form(model.fingerprint, projection) != stored
    )


def texts_of(chunks: Iterable[ChunkText]) -> dict[bytes, str]:
    """Text hash → the text that is embedded."""
    return {
        chunk.hash: embedded_text(chunk.title, chunk.heading_path, chunk.text) for chunk in chunks
    }


def are_expected(reader: Reader, model: StoredModel) -> bool:
    """
    Whether chunks with a vector of this model should have token states.

    The default model's should. Another model's should once a projection was fitted to its states:
    before, nobody has seen whether it has any.
    """
    return model.fingerprint == build.FINGERPRINT or reader.tokens.projection(model) is not None
