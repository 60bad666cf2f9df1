"""The endpoints that search, by calling the tools of the same names."""

from __future__ import annotations

from typing import Annotated

from qmd.server.endpoints import tool
from qmd.server.endpoints.definition import RestEndpoint
from qmd.tools.arguments import SearchArguments, VsearchArguments
from qmd.tools.query_arguments import QueryArguments
from qmd.tools.schemas import reply_model
from qmd.values import Freshness, SearchReply
from qmd.values.facts import Describe

REPLY = reply_model(
    SearchReply,
    content=Annotated[str, Describe("The same as a text")],
    freshness=Freshness,
)


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/search",
        name="search",
        group="search",
        summary="Full-text search (BM25)",
        description=tool.TOOLS["search"].description,
        body=SearchArguments,
        reply=REPLY,
        run=tool.answering("search", REPLY),
        errors=(404,),
        examples=({"query": "meeting notes", "limit": 5, "min_score": 0.5},),
    ),
    RestEndpoint(
        method="POST",
        path="/vsearch",
        name="vsearch",
        group="search",
        summary="Semantic search by vectors",
        description=tool.TOOLS["vsearch"].description,
        body=VsearchArguments,
        reply=REPLY,
        run=tool.answering("vsearch", REPLY),
        errors=(404,),
        examples=({"query": "how do we back up the database?"},),
    ),
    RestEndpoint(
        method="POST",
        path="/query",
        name="query",
        group="search",
        summary="Hybrid search, the best results",
        description=tool.TOOLS["query"].description,
        body=QueryArguments,
        reply=REPLY,
        run=tool.answering("query", REPLY),
        errors=(404,),
        examples=(
            {"query": "how do we back up the database?", "collection": "notes"},
            {
                "query": "",
                "searches": [{"type": "lex", "query": "backup"}],
                "collections": ["notes"],
            },
        ),
    ),
)
