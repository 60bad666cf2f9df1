"""Query → hits: by words, by meaning, by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.kb.parts import Parts
from qmd.search import pipeline
from qmd.values import Filters

if TYPE_CHECKING:
    from qmd.search.hybrid import Models
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.store.sqlite.library import Connection
    from qmd.values import SearchReply


class Search(Parts):
    def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.0,
        filters: Filters = Filters(),
        explain: bool = False,
        min_relevance: float = 0.0,
    ) -> SearchReply:
        """
        Full text (BM25). ``limit`` None means all.

        Raises:
            InputError, CollectionNotFoundError.
        """
        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            return pipeline.search(connection, request)

    def vsearch(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.3,
        filters: Filters = Filters(),
        explain: bool = False,
        min_relevance: float = 0.0,
        expand: bool = True,
        intent: str | None = None,
    ) -> SearchReply:
        """
        Vectors; ``expand`` and ``intent`` as in `query`.

        Raises:
            VectorIndexMissingError, ModelMissingError, ModelMismatchError,
            VectorsUnavailableError, InputError, CollectionNotFoundError.
        """
        from qmd.search import hybrid

        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            models = self._models(connection, expand=expand, rerank=False)
            return hybrid.vsearch(connection, request, models, intent=intent)

    def query(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.0,
        filters: Filters = Filters(),
        explain: bool = False,
        rerank: bool = True,
        expand: bool = True,
        candidates: int = 30,
        intent: str | None = None,
        min_relevance: float = 0.0,
    ) -> SearchReply:
        """
        Both, fused; full text alone where vectors are missing (``reply.degraded`` says why).

        Args:
            rerank: Rerank the best ``candidates``: by the reranker, if one was given, else by
                the scores of full text and vectors. Without, the fused order stays.
            expand: Let the expander, if one was given, ask in other words too.
            intent: What the question is about, for expander and reranker.

        Raises:
            InputError, CollectionNotFoundError.
        """
        from qmd.search import hybrid

        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            models = self._models(connection, expand=expand, rerank=rerank)
            return hybrid.query(connection, request, models, candidates=candidates, intent=intent)

    def _models(self, connection: Connection, *, expand: bool, rerank: bool) -> Models:
        """For one query; together they take no more time than it may cost."""
        from qmd.models.guard import Budget
        from qmd.search.hybrid import Models

        backends = self._backends
        budget = Budget(backends.settings.budget_s)
        reranker = backends.reranker(budget) if rerank else None
        # Whoever is slow must leave time to those that come after.
        share = 1.0 if reranker is None else 0.5
        first = 0.5 * share if self._embedders.asks_server(connection) else share
        return Models(
            lambda: backends.careful(self._embedders.for_questions(connection), budget, share),
            backends.expander(budget, share=first) if expand else None,
            reranker,
            timeout_s=budget.seconds,
            cache=self._vector_cache(),
            rerank=rerank,
        )

    def _vector_cache(self) -> VectorCache:
        from qmd.search.meaning.vector_cache import VectorCache

        opened = self._current()
        with self._lock:
            if opened.vectors is None:
                opened.vectors = VectorCache()
            return opened.vectors
