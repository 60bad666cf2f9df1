"""The endpoints that search, by calling the tools of the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from qmd.operations import texts
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.server.endpoints.operations import in_order
from qmd.tools import hits
from qmd.tools.arguments import SearchArguments, VsearchArguments
from qmd.tools.hits import QueryArguments
from qmd.tools.schemas import reply_model
from qmd.values import Freshness, SearchReply
from qmd.values.facts import Describe

REPLY = reply_model(
    SearchReply,
    content=Annotated[str, Describe("The same as a text")],
    freshness=Freshness,
)
_TOOLS = {tool.name: tool for tool in hits.TOOLS}


def _answering(name: str) -> Callable[[Call], Answer]:
    def answer(call: Call) -> Answer:
        return in_order(REPLY, _TOOLS[name].run(call.kb, call.arguments, texts.REST))

    return answer


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/search",
        name="search",
        group="search",
        summary="Full-text search (BM25)",
        description=_TOOLS["search"].description,
        body=SearchArguments,
        reply=REPLY,
        run=_answering("search"),
        errors=(404,),
        examples=({"query": "meeting notes", "limit": 5, "min_score": 0.5},),
    ),
    RestEndpoint(
        method="POST",
        path="/vsearch",
        name="vsearch",
        group="search",
        summary="Semantic search by vectors",
        description=_TOOLS["vsearch"].description,
        body=VsearchArguments,
        reply=REPLY,
        run=_answering("vsearch"),
        errors=(404,),
        examples=({"query": "how do we back up the database?"},),
    ),
    RestEndpoint(
        method="POST",
        path="/query",
        name="query",
        group="search",
        summary="Hybrid search, the best results",
        description=_TOOLS["query"].description,
        body=QueryArguments,
        reply=REPLY,
        run=_answering("query"),
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
