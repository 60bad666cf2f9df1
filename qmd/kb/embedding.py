"""Making vectors, the models that make them, and reading the text in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from qmd import inference, ingest, libraries, models
from qmd.ingest import keep
from qmd.kb.collections import select_collections
from qmd.kb.parts import Parts, open_to_scopes
from qmd.system import cancellation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import TokenStates
    from qmd.models.catalogue import Catalogue
    from qmd.values import EmbedReport, ModelSpec, OcrReport, ProgressCallback


class EmbeddingMethods(Parts):
    def embed(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> EmbedReport:
        """
        Make the missing vectors. After an interruption the finished ones stay.

        Args:
            collections: Names of collections; empty for all.
            force: Make all vectors, also those that exist.
            progress: Called while the model is downloaded, and after each batch of chunks.

        Raises:
            CollectionNotFoundError.
            ModelMissingError: The model is not on this machine and cannot be downloaded.
            VectorsUnavailableError: sqlite-vec cannot be loaded here.
        """
        opened = self._current()
        ids = (
            [collection.id for collection in select_collections(opened.store, collections)]
            if collections
            else []
        )
        embedder = opened.embedders.open(download=True, progress=progress)
        return ingest.embedding.embed(
            opened.store, embedder, collection_ids=ids, force=force, progress=progress
        )

    def count_unread_pictures(self) -> int:
        """How many pages without a text layer, and photos, wait for `ocr`."""
        with self._store.reading() as reader:
            return reader.pictures.counts().waiting

    def ocr(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> OcrReport:
        """
        Read the text in pictures: pages without a text layer, and photos.

        It becomes part of their documents. After an interruption what was read stays.

        Args:
            collections: Names of collections; empty for all.
            force: Read all, also those that were read.
            progress: Called before each page.

        Raises:
            CollectionNotFoundError.
            OcrUnavailableError: The package is missing, or memory is short, and pages wait.
        """
        store = self._store
        ids = [each.id for each in select_collections(store, collections)] if collections else []
        return ingest.ocr.read_pictures(
            store,
            ingest.ocr.recogniser_of(self._settings.ocr),
            collection_ids=ids,
            force=force,
            progress=progress,
            events=self._events,
            check=cancellation.check,
        )

    def embed_texts(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"] = "passage"
    ) -> NDArray[np.float32]:
        """
        Embed texts and return their vectors; nothing is stored.

        Args:
            kind: What the texts are; some models embed queries and passages differently.

        Returns:
            float32[len(texts), dimension], unit norm.

        Raises:
            ModelMissingError: The model is not on this machine.
            InferenceError: The model failed.
        """
        embedder = self._embedders.query_embedder()
        if kind == "passage":
            return embedder.embed_passages(texts)
        vectors = [embedder.embed_query(text) for text in texts]
        return libraries.np.array(vectors, libraries.np.float32).reshape(
            len(texts), embedder.spec.dimension
        )

    def embed_texts_with_tokens(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"] = "passage"
    ) -> tuple[NDArray[np.float32], Sequence[TokenStates]]:
        """
        Embed texts, and return the token states of each as well; nothing is stored.

        Returns:
            The vectors of `embed_texts`; and token states, none if the model does not give them.

        Raises:
            ModelMissingError, InferenceError: As `embed_texts`.
        """
        embedder = inference.protocols.token_embedder(self._embedders.query_embedder())
        if embedder is None:
            return self.embed_texts(texts, kind=kind), ()
        if kind == "passage":
            return embedder.embed_passages_with_tokens(texts)
        pairs = [embedder.embed_query_with_tokens(text) for text in texts]
        vectors = libraries.np.array([vector for vector, _ in pairs], libraries.np.float32)
        return vectors.reshape(len(texts), embedder.spec.dimension), [each for _, each in pairs]

    @open_to_scopes
    def embedding_model(self) -> ModelSpec:
        """The model that `embed_texts` uses; loads nothing. Raises ModelMissingError."""
        return self._embedders.spec()

    @open_to_scopes
    def model_loaded(self) -> bool:
        """Whether the embedding model's weights are in this process's memory."""
        return self._embedders.is_loaded()

    @open_to_scopes
    def can_embed(self) -> bool:
        """Whether `embed` can run without downloading anything."""
        return self._embedders.is_available()

    @property
    def models(self) -> Catalogue:
        """Lists the models, downloads one, and changes the one that this database uses."""
        opened = self._current()
        return models.catalogue.Catalogue(
            opened.store,
            opened.embedders,
            is_kept=lambda: keep.lock.is_kept(opened.store),
            wake=lambda: self._keeper.embed_soon() if self._keeper is not None else None,
        )
