"""The toolset ``qmd``: search, vsearch, query, get, multi_get, status."""

from __future__ import annotations

import json
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.model import DocumentSlice, Hit, SearchReply, SkippedDocument
from qmd.tools import texts
from qmd.tools.arguments import (
    GetArguments,
    MultiGetArguments,
    SearchArguments,
    StatusArguments,
    VsearchArguments,
)
from qmd.tools.definition import DocumentBlock, Reply, TextBlock, Tool
from qmd.tools.texts import Dialect

# --- search, vsearch, query ----------------------------------------------------------

_HIT_CHARACTERS = 570
"""What a hit may take on average, so that ten fit in 6 KB (Chinese: 12 KB) of a model's context."""

_CROPPED = 180  # characters


def _search(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    return _hits(
        kb.search(
            arguments.query,
            limit=arguments.limit,
            min_score=arguments.min_score,
            filters=arguments.filters(),
            explain=arguments.explain,
        )
    )


def _vsearch(kb: KnowledgeBase, arguments: VsearchArguments, dialect: Dialect) -> Reply:
    return _hits(
        kb.vsearch(
            arguments.query,
            limit=arguments.limit,
            min_score=arguments.min_score,
            filters=arguments.filters(),
            explain=arguments.explain,
        ),
        waiting=dialect.field("needs_embedding"),
    )


def _query(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    return _hits(
        kb.query(
            arguments.query,
            limit=arguments.limit,
            min_score=arguments.min_score,
            filters=arguments.filters(),
            explain=arguments.explain,
        ),
        waiting=dialect.field("needs_embedding"),
    )


def _hits(reply: SearchReply, waiting: str | None = None) -> Reply:
    """``waiting``: the field that says how many documents have no vectors yet, if that matters."""
    blocks = [TextBlock(texts.search_summary(reply.hits, reply.query))]
    structured: dict[str, Any] = {"results": [_hit(each) for each in reply.hits]}
    if reply.degraded is not None:
        blocks.append(TextBlock(f"Note: {reply.degraded}"))
        structured["degraded"] = reply.degraded
    if waiting is not None and reply.needs_embedding:
        structured[waiting] = reply.needs_embedding
    excess = _size(structured) + sum(_size(each.text) for each in blocks)
    _shorten(structured["results"], excess - _HIT_CHARACTERS * max(10, len(reply.hits)))
    return Reply(tuple(blocks), structured)


def _hit(hit: Hit) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "docid": hit.docid,
        "file": hit.file,
        "title": hit.title,
        "score": texts.rounded(hit.score),
        "context": hit.context,
        "snippet": hit.snippet,
        "line": hit.line,
        "relevance": texts.rounded(hit.relevance),
        "match": hit.match,
    }
    if hit.explain is not None:
        fields["explain"] = hit.explain
    return fields


def _shorten(results: list[dict[str, Any]], excess: int) -> None:
    """Shorten snippets to their best line, from the last hit on, until ``excess`` is gone."""
    for each in reversed(results):
        if excess <= 0 or "explain" in each:
            return
        line = _best_line(each)
        excess -= _size(each["snippet"]) - _size(line)
        each["snippet"] = line


def _best_line(hit: dict[str, Any]) -> str:
    """A line that ends in an ellipsis was cropped with its match in the first third."""
    snippet: str = hit["snippet"]
    number = f"{hit['line']}: "
    line = next((each for each in snippet.split("\n") if each.startswith(number)), snippet)
    return line[:_CROPPED].rstrip("…") + "…" if line.endswith("…") else line


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _hits_schema(dialect: Dialect) -> dict[str, Any]:
    hit = {
        "docid": {"type": "string"},
        "file": {"type": "string"},
        "title": {"type": "string"},
        "score": {"type": "number"},
        "context": {"type": ["string", "null"]},
        "snippet": {"type": "string"},
        "line": {"type": "integer"},
        "relevance": {"type": "number"},
        "match": {"enum": ["exact", "relaxed", "semantic"]},
        "explain": {"type": "object"},
    }
    extra = {
        "degraded": {"type": "string"},
        dialect.field("needs_embedding"): {"type": "integer"},
    }
    results = {"type": "array", "items": _object(hit, optional=("explain",))}
    return _object({"results": results, **extra}, optional=tuple(extra))


# --- get, multi_get ------------------------------------------------------------------


def _get(kb: KnowledgeBase, arguments: GetArguments, dialect: Dialect) -> Reply:
    document = kb.get(arguments.file, from_line=arguments.from_line, max_lines=arguments.max_lines)
    # A cut is what the caller asked for here; only multi_get announces it.
    return Reply((_document(document, document.text, numbered=arguments.line_numbers),))


def _multi_get(kb: KnowledgeBase, arguments: MultiGetArguments, dialect: Dialect) -> Reply:
    reply = kb.multi_get(
        arguments.pattern, max_lines=arguments.max_lines, max_bytes=arguments.max_bytes
    )
    blocks: list[TextBlock | DocumentBlock] = []
    if reply.errors:
        blocks.append(TextBlock(texts.errors_block(reply.errors)))
    for item in reply.items:
        if isinstance(item, SkippedDocument):
            notice = texts.skip_notice(item.document.file, item.document.bytes, dialect)
            blocks.append(TextBlock(notice))
        else:
            text = texts.with_notice(item.text, item.more_lines, dialect)
            blocks.append(_document(item, text, numbered=arguments.line_numbers))
    return Reply(tuple(blocks), is_error=not reply.items)


def document_block(document: DocumentSlice) -> DocumentBlock:
    """A document as a resource: its lines numbered, its context in front."""
    return _document(document, document.text, numbered=True)


def _document(document: DocumentSlice, text: str, *, numbered: bool) -> DocumentBlock:
    if numbered:
        text = texts.line_numbers(text, document.from_line)
    return DocumentBlock(document.document, texts.with_context(text, document.context))


# --- status --------------------------------------------------------------------------


def _status(kb: KnowledgeBase, arguments: StatusArguments, dialect: Dialect) -> Reply:
    status = kb.status()
    advice = texts.status_advice(status)
    blocks = [texts.status_text(status), *([advice] if advice is not None else [])]
    structured = {
        "total_documents": status.total_documents,
        "needs_embedding": status.needs_embedding,
        "has_vector_index": status.has_vector_index,
        "collections": [
            {
                "name": each.name,
                "path": each.path,
                "pattern": each.pattern,
                "documents": each.documents,
                dialect.field("last_updated"): each.last_updated or each.last_indexed,
            }
            for each in status.collections
        ],
    }
    return Reply(
        tuple(TextBlock(each) for each in blocks),
        {dialect.field(name): value for name, value in structured.items()},
    )


def _status_schema(dialect: Dialect) -> dict[str, Any]:
    collection = {
        "name": {"type": "string"},
        "path": {"type": "string"},
        "pattern": {"type": "string"},
        "documents": {"type": "integer"},
        dialect.field("last_updated"): {"type": ["string", "null"]},
    }
    return _object(
        {
            dialect.field("total_documents"): {"type": "integer"},
            dialect.field("needs_embedding"): {"type": "integer"},
            dialect.field("has_vector_index"): {"type": "boolean"},
            "collections": {"type": "array", "items": _object(collection)},
        }
    )


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


# --- the toolset ---------------------------------------------------------------------

TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="search",
        title="Search (BM25)",
        description=(
            "Full-text search over the indexed documents, in English and Chinese; fast, no model. "
            "Start here for words, names, identifiers, error messages and exact phrases. "
            'Syntax: words (all must occur; looser matches fill up, marked match "relaxed"), '
            '"phrase", -word, word*, OR, title:word, path:word, tag:word. Hits come best first, '
            "with score 0-1 and a snippet with line numbers; pass a hit's file to get to read on."
        ),
        arguments=SearchArguments,
        run=_search,
        output_schema=_hits_schema,
    ),
    Tool(
        name="vsearch",
        title="Vector search",
        description=(
            "Semantic search by meaning, also across English and Chinese. For questions and ideas "
            "whose words may differ from the documents' own. "
            "Fails if no embeddings were made yet ('qmd embed'); use search then."
        ),
        arguments=VsearchArguments,
        run=_vsearch,
        output_schema=_hits_schema,
    ),
    Tool(
        name="query",
        title="Hybrid query",
        description=(
            "Best results: full text and vectors together, fused and reranked; slower than search. "
            "For important questions in natural language, or when search and vsearch disappoint. "
            "Without vectors it answers from full text and says so in degraded. "
            "query may also be lines 'lex: words', 'vec: sentence', 'hyde: made-up answer', "
            "'intent: what it is for'."
        ),
        arguments=SearchArguments,
        run=_query,
        output_schema=_hits_schema,
    ),
    Tool(
        name="get",
        title="Get document",
        description=(
            "Read one document, whole or some lines of it, by the file or docid of a hit. "
            "An unknown path is answered with similar ones."
        ),
        arguments=GetArguments,
        run=_get,
    ),
    Tool(
        name="multi_get",
        title="Get several documents",
        description=(
            "Read several documents at once, by glob or list. "
            "Files over maxBytes are skipped with a notice; read those with get."
        ),
        arguments=MultiGetArguments,
        run=_multi_get,
    ),
    Tool(
        name="status",
        title="Index status",
        description=(
            "Which collections exist, how many documents they hold, "
            "and whether vectors are ready. Names for the collection argument come from here."
        ),
        arguments=StatusArguments,
        run=_status,
        output_schema=_status_schema,
    ),
)
