"""search, vsearch and query: ranked hits, small enough for a model to read."""

from __future__ import annotations

import json
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.tools import texts
from qmd.tools.arguments import SearchArguments, VsearchArguments
from qmd.tools.definition import Reply, TextBlock, object_schema
from qmd.tools.index_status import freshness_fields, freshness_schema
from qmd.tools.texts import Dialect
from qmd.values import Hit, SearchReply

_HIT_CHARACTERS = 570
"""What a hit may take on average, so that ten fit in 6 KB (Chinese: 12 KB) of a model's context."""

_CROPPED = 180  # characters


def search(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    found = kb.search(arguments.query, **arguments.options())
    return _reply(kb, found, dialect)


def vsearch(kb: KnowledgeBase, arguments: VsearchArguments, dialect: Dialect) -> Reply:
    found = kb.vsearch(arguments.query, **arguments.options())
    return _reply(kb, found, dialect, vectors=True)


def query(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    found = kb.query(arguments.query, **arguments.options())
    return _reply(kb, found, dialect, vectors=True)


def _reply(
    kb: KnowledgeBase, reply: SearchReply, dialect: Dialect, *, vectors: bool = False
) -> Reply:
    """``vectors``: whether it matters how many documents have none yet."""
    blocks = [TextBlock(texts.search_summary(reply.hits, reply.query))]
    structured: dict[str, Any] = {"results": [_hit(each) for each in reply.hits]}
    if reply.degraded is not None:
        blocks.append(TextBlock(f"Note: {reply.degraded}"))
        structured["degraded"] = reply.degraded
    if vectors and reply.needs_embedding:
        structured[dialect.field("needs_embedding")] = reply.needs_embedding
    freshness = kb.freshness(embeddings_pending=reply.needs_embedding)
    structured["freshness"] = freshness_fields(freshness, dialect)
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


def hits_schema(dialect: Dialect) -> dict[str, Any]:
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
    always = {"freshness": freshness_schema(dialect)}
    results = {"type": "array", "items": object_schema(hit, optional=("explain",))}
    return object_schema({"results": results, **always, **extra}, optional=tuple(extra))
