"""
The arguments of `query`: those of all searches, and those that scripts for tobi/qmd send.

The latter are accepted over MCP and REST, and the listing of the tool leaves them out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from qmd.operations.bounds import MAX_SEARCHES
from qmd.search.query.lines import parse_lines
from qmd.tools.arguments import Arguments, OfSearch, arguments_model
from qmd.values import SearchRequest
from qmd.values.facts import Unlisted


class TypedSearch(Arguments):
    """One text for one retriever; as a line of a query it is ``type: query``."""

    type: Literal["lex", "vec", "hyde"]
    query: str


class _QueryArguments(OfSearch):
    searches: Annotated[list[TypedSearch], Unlisted()] = Field(
        [],
        description="Texts for words (lex) and for meaning (vec, hyde); query may be empty then",
        json_schema_extra={"maxItems": MAX_SEARCHES},  # `bounds` checks it
    )

    @model_validator(mode="before")
    @classmethod
    def _without_query(cls, sent: Any) -> Any:
        """
        A query is required only where there are no searches.

        The schemas require it always: "one of two" is a union, of which generators of clients make
        two types that lack all other fields.
        """
        if isinstance(sent, dict) and sent.get("searches") and sent.get("query") is None:
            return {**sent, "query": ""}
        return sent

    def value(self) -> SearchRequest:
        """The request; searches become the lines of its query."""
        request = super().value()
        lines = [
            f"{search.type}: {' '.join(search.query.split())}"
            for search in self.searches
            if search.query.strip()
        ]
        query = request.query
        if lines and query.strip() and parse_lines(query) is None:
            text = " ".join(query.split())
            query = f"lex: {text}\nvec: {text}"
        if not lines:
            return request
        return replace(request, query="\n".join(filter(None, (query.strip(), *lines))))


QueryArguments = arguments_model("QueryArguments", SearchRequest, _QueryArguments, "query")
