"""Query → hits: by words, by meaning, by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.kb.parts import Parts
from qmd.search.searches import search_by_both, search_by_meaning, search_by_words
from qmd.values import Filters, SearchRequest
from qmd.values.search import VSEARCH_MIN_SCORE

if TYPE_CHECKING:
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.search.models import SearchModels
    from qmd.store import Reader
    from qmd.values import SearchCommand, SearchReply


class SearchMethods(Parts):
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
        request = SearchRequest(
            query,
            limit=limit,
            min_score=min_score,
            filters=filters,
            explain=explain,
            min_relevance=min_relevance,
        )
        return self.answer("search", request)

    def vsearch(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = VSEARCH_MIN_SCORE,
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
        request = SearchRequest(
            query,
            limit=limit,
            min_score=min_score,
            filters=filters,
            explain=explain,
            min_relevance=min_relevance,
            expand=expand,
            intent=intent,
        )
        return self.answer("vsearch", request)

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
        request = SearchRequest(
            query,
            limit=limit,
            min_score=min_score,
            filters=filters,
            explain=explain,
            min_relevance=min_relevance,
            rerank=rerank,
            expand=expand,
            candidates=candidates,
            intent=intent,
        )
        return self.answer("query", request)

    def answer(self, command: SearchCommand, request: SearchRequest) -> SearchReply:
        """
        What the method named by ``command`` answers, with all options as one value.

        Raises:
            What that method raises.
        """
        with self._store.reading() as reader:
            if command == "search":
                return search_by_words(reader, request)
            rerank = request.rerank and command == "query"
            models = self._models(reader, expand=request.expand, rerank=rerank)
            search = search_by_meaning if command == "vsearch" else search_by_both
            return search(reader, request, models)

    def _models(self, reader: Reader, *, expand: bool, rerank: bool) -> SearchModels:
        """For one query; together they take no more time than it may cost."""
        from qmd.models.guard import Budget
        from qmd.search.models import SearchModels

        backends = self._backends
        budget = Budget(backends.settings.budget_s)
        reranker = backends.reranker(budget) if rerank else None
        # Whoever is slow must leave time to those that come after.
        share = 1.0 if reranker is None else 0.5
        first = 0.5 * share if self._embedders.asks_server(reader) else share
        return SearchModels(
            lambda: backends.careful(self._embedders.for_questions(reader), budget, share),
            backends.expander(budget, share=first) if expand else None,
            reranker,
            timeout_s=budget.seconds,
            cache=self._vector_cache(),
        )

    def _vector_cache(self) -> VectorCache:
        from qmd.search.meaning.vector_cache import VectorCache

        opened = self._current()
        with self._lock:
            if opened.vectors is None:
                opened.vectors = VectorCache()
            return opened.vectors
