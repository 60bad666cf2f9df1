"""The first step of every search: which documents may be candidates, and what to look for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from qmd.search.query.dates import iso_date
from qmd.search.query.language import ParsedQuery, parse
from qmd.search.words.checks import Exclusions, exclusions
from qmd.values import Filters, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader, Selection


class Scope(NamedTuple):
    """
    Which documents may be candidates, and how many of them a retriever ranks (None: all).

    ``exclusions`` are for retrievers that do not know the query: full text leaves out by itself
    what its own query excludes.
    """

    selection: Selection
    depth: int | None
    exclusions: Exclusions | None = None


class Question(NamedTuple):
    """A parsed query and its scope."""

    query: ParsedQuery
    scope: Scope


def parse_request(reader: Reader, request: SearchRequest) -> Question:
    """
    The question of a request.

    Raises:
        InputError: See `SearchRequest.check`; or a filter is no date.
        CollectionNotFoundError: With suggestions.
    """
    request.check()
    return parse_text(reader, request, request.query, request.depth)


def with_exclusions(reader: Reader, question: Question) -> Question:
    """For a retriever by meaning: look up the documents that the query excludes."""
    scope = question.scope._replace(exclusions=exclusions(reader, question.query))
    return question._replace(scope=scope)


def parse_text(reader: Reader, request: SearchRequest, text: str, depth: int | None) -> Question:
    """As `parse_request`, of a text in place of the request's query, to a depth."""
    filters = _with_iso_dates(request.filters)
    query = parse(text)
    selection = reader.select(
        replace(filters, tags=(*filters.tags, *query.tags)),
        either_tags=query.either_tags,
        no_tags=query.no_tags,
    )
    return Question(query, Scope(selection, depth))


def _with_iso_dates(filters: Filters) -> Filters:
    if not (filters.after or filters.before):
        return filters
    return replace(
        filters,
        after=iso_date(filters.after) if filters.after else None,
        before=iso_date(filters.before) if filters.before else None,
    )
