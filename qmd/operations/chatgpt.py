"""
The operations search and fetch, in the shapes that ChatGPT expects of a connector.

Its deep research and its company knowledge call no other tools. Each reply is one JSON text and the
same as structured content (developers.openai.com, "Building MCP servers for ChatGPT").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from qmd.operations import texts
from qmd.operations.definition import ByHand, KnowledgeBase, Replied, operation
from qmd.operations.replies import Reply, json_block
from qmd.operations.texts import Dialect
from qmd.values import DocumentSlice, SearchRequest
from qmd.values.facts import Describe, NotSent
from qmd.values.wire import to_wire


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


def _reply(replied: Replied, dialect: Dialect) -> Reply:
    structured = to_wire(replied.value)
    return Reply((json_block(structured),), structured)


@operation(
    command=None,
    tool=ByHand(_reply, ConnectorResults, in_full=True),
    title="Search the knowledge base",
    zh="按词语和含义搜索用户自己的文档，中英文皆可。最相关的在前；用 fetch 按 id 阅读。",
)
def search(
    kb: KnowledgeBase, query: Annotated[str, Describe("What to look for", zh="要查找的内容")]
) -> ConnectorResults:
    """
    Search the user's own documents by words and by meaning, in English and Chinese. Returns the
    best documents first; fetch reads one by its id.
    """
    reply = kb.run_search("query", SearchRequest(query))
    return ConnectorResults(
        tuple(ConnectorResult(hit.file, hit.title, hit.uri) for hit in reply.hits)
    )


@operation(
    command=None,
    tool=ByHand(_reply, FetchedDocument, in_full=True),
    title="Read a document",
    zh="按搜索结果的 id 阅读知识库中的一篇文档。若文档很长，metadata.left_out 说明如何继续阅读。",
)
def fetch(
    kb: KnowledgeBase,
    id: Annotated[  # noqa: A002 - the name on the wire
        str,
        Describe(
            "The id of a result; :LINE behind it starts there",
            zh="结果的 id；其后可加 :行号，从该行读起",
        ),
    ],
    max_total_bytes: Annotated[int | None, NotSent()] = None,
) -> FetchedDocument:
    """
    Read a document of the knowledge base, by the id of a search result. If it is long,
    metadata.left_out says how to read on.
    """
    document = kb.get(id, max_total_bytes=max_total_bytes)
    info = document.document
    return FetchedDocument(id, info.title, document.text, info.uri, _metadata(document))


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
