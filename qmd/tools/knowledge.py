"""The toolset ``qmd``: search, vsearch, query, get, multi_get, status."""

from __future__ import annotations

import functools
from typing import Any

from qmd.tools import documents, hits, index_status
from qmd.tools.arguments import (
    SearchArguments,
    VsearchArguments,
)
from qmd.tools.definition import Tool
from qmd.tools.query_arguments import QueryArguments
from qmd.tools.schemas import output_schema
from qmd.values import DocumentSlice, MultiGetReply

TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="search",
        title="Search (BM25)",
        description=(
            "Full-text search, in English and Chinese; fast, no model. "
            'Syntax: words (all must occur; looser matches fill up as "relaxed"), "phrase", -word, '
            "word*, OR, title:, description:, path:, tag: before a word; key:value, key:>4 for "
            "properties. Best hits first; get reads a hit's file."
        ),
        arguments=SearchArguments,
        run=hits.search,
        output_schema=hits.hits_schema,
        outputs_more=True,
    ),
    Tool(
        name="vsearch",
        title="Vector search",
        description=(
            "Search by meaning, also across English and Chinese: for ideas in other words than "
            "the documents'."
        ),
        arguments=VsearchArguments,
        run=hits.vsearch,
        output_schema=hits.hits_schema,
        outputs_more=True,
    ),
    Tool(
        name="query",
        title="Hybrid query",
        description=(
            "Best results: full text and vectors together; slower than search. "
            "For questions. "
            "Without vectors it uses full text and says so in degraded. "
            "query may also be lines 'lex: words', 'vec: sentence', 'hyde: made-up answer', "
            "'intent: what it is for'."
        ),
        arguments=QueryArguments,
        run=hits.query,
        output_schema=hits.hits_schema,
        outputs_more=True,
    ),
    Tool(
        name="get",
        title="Get document",
        description=("Read one document, or some lines of it, by the file or docid of a hit."),
        arguments=documents.GetArguments,
        run=documents.get,
        output_schema=functools.partial(output_schema, DocumentSlice),
        outputs_more=True,
    ),
    Tool(
        name="multi_get",
        title="Get several documents",
        description=("Read several documents at once. Files over maxBytes are skipped: use get."),
        arguments=documents.MultiGetArguments,
        run=documents.multi_get,
        output_schema=functools.partial(output_schema, MultiGetReply),
        outputs_more=True,
        bulky=True,
    ),
    Tool(
        name="status",
        title="Index status",
        description=(
            "Which collections exist, how many documents they hold, and whether vectors are ready."
        ),
        arguments=index_status.StatusArguments,
        run=index_status.status,
        output_schema=index_status.status_schema,
    ),
)
