"""search, vsearch and query: ranked hits, small enough for a model to read."""

from __future__ import annotations

import json
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.model import Hit, SearchReply
from qmd.tools import texts
from qmd.tools.arguments import SearchArguments, VsearchArguments
from qmd.tools.definition import Reply, TextBlock, object_schema
from qmd.tools.texts import Dialect

_HIT_CHARACTERS = 570
"""What a hit may take on average, so that ten fit in 6 KB (Chinese: 12 KB) of a model's context."""

_CROPPED = 180  # characters


def search(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    return _reply(kb.search(arguments.query, **arguments.options()))


def vsearch(kb: KnowledgeBase, arguments: VsearchArguments, dialect: Dialect) -> Reply:
    found = kb.vsearch(arguments.query, **arguments.options())
    return _reply(found, waiting=dialect.field("needs_embedding"))


def query(kb: KnowledgeBase, arguments: SearchArguments, dialect: Dialect) -> Reply:
    found = kb.query(arguments.query, **arguments.options())
    return _reply(found, waiting=dialect.field("needs_embedding"))


def _reply(reply: SearchReply, waiting: str | None = None) -> Reply:
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
    results = {"type": "array", "items": object_schema(hit, optional=("explain",))}
    return object_schema({"results": results, **extra}, optional=tuple(extra))
