"""The three searches: `search` by words, `vsearch` by meaning, `query` by both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from qmd import ingest, libraries, models, search
from qmd.errors import VectorIndexMissingError
from qmd.kb.parts import Parts, open_to_scopes
from qmd.records import replace
from qmd.search import meaning
from qmd.values import SearchReply, SearchRequest
from qmd.values.facts import DefaultFor, ForCommands, field_facts

if TYPE_CHECKING:
    from inspect import Signature

    from qmd.search.meaning.loaded_vectors import CodesFile
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.search.question import SearchModels
    from qmd.store import Reader
    from qmd.values import SearchCommand
    from qmd.values.location import DatabaseLocation


RequestFields = ParamSpec("RequestFields")
OwnerT = TypeVar("OwnerT")


def takes_fields(
    request_type: Callable[RequestFields, SearchRequest],
) -> Callable[
    [Callable[[OwnerT, SearchRequest], SearchReply]],
    Callable[Concatenate[OwnerT, RequestFields], SearchReply],
]:
    """
    Let callers of a search method give the fields of its request, and type checkers know them.

    The name of the method is that of its command; a field that is for other commands is a
    TypeError.
    """
    request_with = cast("Callable[..., SearchRequest]", request_type)

    def wrap(
        method: Callable[[OwnerT, SearchRequest], SearchReply],
    ) -> Callable[Concatenate[OwnerT, RequestFields], SearchReply]:
        return cast(
            "Callable[Concatenate[OwnerT, RequestFields], SearchReply]",
            _MadeWhenUsed(method, lambda: with_arguments(method)),
        )

    def with_arguments(
        method: Callable[[OwnerT, SearchRequest], SearchReply],
    ) -> Callable[Concatenate[OwnerT, RequestFields], SearchReply]:
        command = method.__name__
        signature = _signature(command)
        defaults = {
            field.name: field.for_command(command).default
            for field in field_facts(SearchRequest)
            if field.has(DefaultFor)
        }

        @functools.wraps(method)
        def with_fields(
            self: OwnerT, /, *query: RequestFields.args, **options: RequestFields.kwargs
        ) -> SearchReply:
            signature.bind(self, *query, **options)
            return method(self, request_with(*query, **{**defaults, **options}))

        vars(with_fields)["__signature__"] = signature
        return with_fields

    return wrap


class _MadeWhenUsed:
    """Builds the public method on first access; the shell never needs it."""

    def __init__(self, method: Callable[..., object], make: Callable[[], object]) -> None:
        self.__wrapped__, self.__doc__ = method, method.__doc__  # for those who look, not call
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> object:
        setattr(self._owner, self._name, self._make())
        return getattr(owner if instance is None else instance, self._name)


def _signature(command: str) -> Signature:
    """What `help` and editors show, and calls are checked by."""
    Parameter, Signature = libraries.inspect.Parameter, libraries.inspect.Signature
    parameters = [
        Parameter(
            field.name,
            Parameter.POSITIONAL_OR_KEYWORD if field.is_required else Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.is_required else field.default,
            annotation=field.hint,
        )
        for field in (each.for_command(command) for each in field_facts(SearchRequest))
        if (commands := field.get(ForCommands)) is None or command in commands.names
    ]
    this = Parameter("self", Parameter.POSITIONAL_ONLY)
    return Signature([this, *parameters], return_annotation=SearchReply)


_NO_COLLECTIONS = "There are no collections yet: 'qmd up FOLDER' makes a folder searchable."
_NO_DOCUMENTS = (
    "There are no documents yet: 'qmd status' shows the collections, and what they leave out."
)


class SearchMethods(Parts):
    """Each search takes a query and, as keywords, the fields of `SearchRequest` for its command."""

    @takes_fields(SearchRequest)
    @open_to_scopes
    def search(self, request: SearchRequest) -> SearchReply:
        """
        Search by words: full text, ranked by BM25.

        The arguments are the fields of `SearchRequest`; docs/search.md describes the operators
        of a query.

        Returns:
            The hits, best first.

        Raises:
            InputError: An argument is out of its range, or a filter has a wrong date.
            CollectionNotFoundError: A filter names an unknown collection.
            NotFoundError: No document has the property to sort or group by.
        """
        return self.run_search("search", request)

    @takes_fields(SearchRequest)
    @open_to_scopes
    def vsearch(self, request: SearchRequest) -> SearchReply:
        """
        Search by meaning: the documents whose vectors are nearest to that of the query.

        The arguments are the fields of `SearchRequest`.

        Raises:
            VectorIndexMissingError: No document has a vector yet.
            ModelMissingError: The embedding model is not on this machine.
            ModelMismatchError: The vectors were made by another model than the one in use.
            VectorsUnavailableError: sqlite-vec cannot be loaded here.
            InputError, CollectionNotFoundError: As `search`.
        """
        return self.run_search("vsearch", request)

    @takes_fields(SearchRequest)
    @open_to_scopes
    def query(self, request: SearchRequest) -> SearchReply:
        """
        Search by words and by meaning, and rank by the evidence of both.

        Without vectors full text answers alone, and ``reply.degraded`` says why. The arguments
        are the fields of `SearchRequest`.

        Raises:
            InputError, CollectionNotFoundError: As `search`.
        """
        return self.run_search("query", request)

    @open_to_scopes
    def run_search(self, command: SearchCommand, request: SearchRequest) -> SearchReply:
        """
        Run the search that ``command`` names, with all its options as one value.

        Raises:
            The errors of the method of that name.
        """
        with self._store.reading() as reader:
            reply = self._reply(reader, command, request)
            return replace(reply, needs_embedding=reader.upkeep.count_contents_waiting())

    def _reply(self, reader: Reader, command: SearchCommand, request: SearchRequest) -> SearchReply:
        if command == "search":
            return search.searches.search_by_words(reader, request)
        rerank = request.rerank and command == "query" and "model" not in request.without
        search_models = self._models(reader, expand=request.expand, rerank=rerank)
        if command == "vsearch":
            return self._by_meaning(reader, request, search_models)
        return search.searches.search_by_both(reader, request, search_models)

    def _by_meaning(
        self, reader: Reader, request: SearchRequest, search_models: SearchModels
    ) -> SearchReply:
        try:
            return search.searches.search_by_meaning(reader, request, search_models)
        except VectorIndexMissingError:
            raise VectorIndexMissingError(search_models.without_vectors()) from None

    @property
    @open_to_scopes
    def has_expander(self) -> bool:
        """Whether the settings name a model that expands queries."""
        return self._backends.has_expander

    @property
    @open_to_scopes
    def has_reranker(self) -> bool:
        """Whether the settings name a model that reranks hits."""
        return self._backends.has_reranker

    def _models(self, reader: Reader, *, expand: bool, rerank: bool) -> SearchModels:
        """The models for one query; together they take at most ``backends.budget_s`` seconds."""
        backends = self._backends
        budget = models.guard.Budget(backends.settings.budget_s)
        reranker = backends.reranker(budget) if rerank else None
        # A slow model must leave time for the models that are asked after it.
        share = 1.0 if reranker is None else 0.5
        first = 0.5 * share if self._embedders.asks_server(reader) else share
        return search.question.SearchModels(
            lambda: backends.careful(self._embedders.for_questions(reader), budget, share),
            backends.expander(budget, share=first) if expand else None,
            reranker,
            timeout_s=budget.seconds,
            cache=self._vector_cache,
            without_vectors=functools.partial(self._without_vectors, reader),
        )

    def _without_vectors(self, reader: Reader) -> str | None:
        """Why there are no vectors, where making them would not help; else None."""
        if not reader.collections.definitions():
            return _NO_COLLECTIONS
        # By the reader of the search: a full disk may have no room for a second connection.
        keeper = self._keeper
        if keeper is not None and keeper.state.leader:
            is_indexing, embeds = keeper.state.indexing, keeper.state.embedding
        else:
            is_indexing, embeds = ingest.keep.freshness.activity(self._store, reader)
        if not is_indexing and not reader.full_text.document_count():
            return _NO_DOCUMENTS
        return search.retrieve.VECTORS_COMING if embeds else None

    def _vector_cache(self) -> VectorCache:
        opened = self._current()
        with self._lock:
            if opened.vectors is None:
                file = self._codes_file(opened.store.location)
                opened.vectors = meaning.vector_cache.VectorCache(opened.store.reading, file)
            return opened.vectors

    def _codes_file(self, location: DatabaseLocation) -> CodesFile | None:
        """Where the codes of all vectors are kept from one process to the next, if anywhere."""
        if not isinstance(location, Path):
            return None
        return meaning.loaded_vectors.CodesFile(self._embedders.cache_dir / "vectors", location)
