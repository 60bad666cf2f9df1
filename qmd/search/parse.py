"""The first step of every search: parse the query, and select the documents it may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import InputError
from qmd.search.named import find_named, written_name
from qmd.search.query.dates import filter_date
from qmd.search.query.language import ParsedQuery, parse, possible_keys
from qmd.search.words.checks import Exclusions, exclusions
from qmd.values import Filters, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader, Selection
    from qmd.store.sql.documents import NameKind


class Scope(NamedTuple):
    """
    Which documents a retriever may return.

    Attributes:
        selection: The documents that pass the filters and tags.
        depth: The retriever returns at most this many; None for all.
        exclusions: What the query excludes, for retrieval by meaning. (Full text applies the
            exclusions of its query itself.)
    """

    selection: Selection
    depth: int | None
    exclusions: Exclusions | None = None


class Question(NamedTuple):
    """
    A parsed query and its scope.

    Attributes:
        text: The query as it was parsed: a link or a file name without its signs.
        named: Document id → which of its names the query is.
    """

    query: ParsedQuery
    scope: Scope
    text: str
    named: Mapping[int, NameKind]


def parse_request(reader: Reader, request: SearchRequest) -> Question:
    """
    Check a request, parse its query and select the documents.

    Raises:
        InputError: See `SearchRequest.check`; or a date filter is not a date, or a filter by a
            property no condition.
        CollectionNotFoundError: A filter names an unknown collection; with suggestions.
    """
    request.check()
    return parse_text(reader, request, request.query, request.depth)


def with_exclusions(reader: Reader, question: Question) -> Question:
    """Look up the documents that the query excludes, as retrieval by meaning needs them."""
    scope = question.scope._replace(exclusions=exclusions(reader, question.query))
    return question._replace(scope=scope)


def parse_text(reader: Reader, request: SearchRequest, text: str, depth: int | None) -> Question:
    """As `parse_request`, for ``text`` instead of the request's query, and another depth."""
    filters = _with_collections(reader, _with_dates(request.filters))
    name = written_name(text)
    if name is not None and "/" not in name:
        bare = parse(name)
        selection = reader.select(filters)
        named = find_named(reader, [name], bare, selection)
        if named and not bare.narrowed:
            return Question(bare, Scope(selection, depth), name, named)
    query = parse_query(reader, text)
    selection = reader.select(
        replace(filters, tags=(*filters.tags, *query.tags)),
        either=query.either,
        none_of=query.none_of,
    )
    named = find_named(reader, [text, query.text], query, selection)
    return Question(query, Scope(selection, depth), text, named)


def parse_query(reader: Reader, text: str) -> ParsedQuery:
    """Parse a query; conditions are on properties that documents of this snapshot have."""
    keys = possible_keys(text)
    return parse(text, reader.properties.existing_keys(keys) if keys else keys)


def _with_collections(reader: Reader, filters: Filters) -> Filters:
    """
    The filters; without a collection or a path, those that a person left out are left out.

    Raises InputError if all are.
    """
    if filters.collections or filters.path:
        return filters
    names = reader.collections.included_names()
    if names == []:
        raise InputError(
            "All collections are left out of searches that name none.",
            hint="Name one with -c NAME, or 'qmd collection include NAME'.",
        )
    return filters if names is None else replace(filters, collections=tuple(names))


def _with_dates(filters: Filters) -> Filters:
    if not (filters.after or filters.before):
        return filters
    return replace(
        filters,
        after=filter_date(filters.after) if filters.after else None,
        before=filter_date(filters.before) if filters.before else None,
    )
