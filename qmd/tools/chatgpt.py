"""
The toolset ``chatgpt``: search and fetch, in the shapes that ChatGPT expects of a connector.

Its deep research and its company knowledge call no other tools. Each reply is one JSON text and the
same as structured content (developers.openai.com, "Building MCP servers for ChatGPT").
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.replies import Reply, json_block
from qmd.operations.texts import Dialect
from qmd.tools.arguments import Arguments
from qmd.tools.definition import Tool
from qmd.tools.schemas import output_schema
from qmd.values import DocumentSlice, SearchRequest
from qmd.values.facts import Describe
from qmd.values.wire import to_wire


class ConnectorSearchArguments(Arguments):
    query: str = Field(description="What to look for")


class FetchArguments(Arguments):
    id: str = Field(description="The id of a result; :LINE behind it starts there")


@dataclass(frozen=True, slots=True)
class ConnectorResult:
    id: Annotated[str, Describe("collection/path; fetch takes it")]
    title: str
    url: Annotated[str, Describe("To cite")]


@dataclass(frozen=True, slots=True)
class ConnectorResults:
    results: tuple[ConnectorResult, ...]


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    id: str
    title: str
    text: str
    url: str
    metadata: Mapping[str, str]


def search(kb: KnowledgeBase, arguments: ConnectorSearchArguments, dialect: Dialect) -> Reply:
    reply = kb.answer("query", SearchRequest(arguments.query))
    hits = tuple(ConnectorResult(hit.file, hit.title, hit.uri) for hit in reply.hits)
    return _reply(ConnectorResults(hits))


def fetch(kb: KnowledgeBase, arguments: FetchArguments, dialect: Dialect) -> Reply:
    document = kb.get(arguments.id, max_total_bytes=dialect.max_bytes)
    info = document.document
    return _reply(
        FetchedDocument(arguments.id, info.title, document.text, info.uri, _metadata(document))
    )


def _metadata(document: DocumentSlice) -> dict[str, str]:
    info = document.document
    metadata = {
        "collection": info.collection,
        "path": info.path,
        "docid": info.docid,
        "modified": info.modified,
    }
    if document.context is not None:
        metadata["context"] = document.context
    if document.left_out is not None:
        metadata["left_out"] = texts.lines_left_out(
            document.left_out, info.file, raise_what=None, tool="fetch"
        )
    return metadata


def _reply(value: ConnectorResults | FetchedDocument) -> Reply:
    structured = to_wire(value)
    return Reply((json_block(structured),), structured)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="search",
        title="Search the knowledge base",
        description=(
            "Search the user's own documents by words and by meaning, in English and Chinese. "
            "Returns the best documents first; fetch reads one by its id."
        ),
        arguments=ConnectorSearchArguments,
        run=search,
        is_prescribed=True,
        output_schema=functools.partial(output_schema, ConnectorResults),
    ),
    Tool(
        name="fetch",
        title="Read a document",
        description=(
            "Read a document of the knowledge base, by the id of a search result. If it is long, "
            "metadata.left_out says how to read on."
        ),
        arguments=FetchArguments,
        run=fetch,
        is_prescribed=True,
        output_schema=functools.partial(output_schema, FetchedDocument),
    ),
)
