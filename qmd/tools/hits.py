"""search, vsearch and query: ranked hits, small enough for a model to read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.tools import texts
from qmd.tools.arguments import ValueArguments
from qmd.tools.definition import Reply, TextBlock
from qmd.tools.schemas import output_schema
from qmd.tools.texts import Dialect
from qmd.values import Freshness, Hit, SearchReply, SearchRequest
from qmd.values.wire import to_wire

SearchOptions = ValueArguments[SearchRequest]

_HIT_CHARACTERS = 570
"""What a hit may take on average, so that ten fit in 6 KB (Chinese: 12 KB) of a model's context."""

_CROPPED = 180  # characters


def search(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("search", arguments.value()), dialect)


def vsearch(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("vsearch", arguments.value()), dialect, vectors=True)


def query(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("query", arguments.value()), dialect, vectors=True)


def _reply(
    kb: KnowledgeBase, reply: SearchReply, dialect: Dialect, *, vectors: bool = False
) -> Reply:
    """``vectors``: whether it matters how many documents have none yet."""
    blocks = [TextBlock(texts.search_summary(reply.hits, reply.query))]
    if reply.degraded is not None:
        blocks.append(TextBlock(f"Note: {reply.degraded}"))
    freshness = kb.freshness(embeddings_pending=reply.needs_embedding)
    sent = replace(
        reply,
        hits=tuple(map(_rounded, reply.hits)),
        needs_embedding=reply.needs_embedding if vectors else 0,
    )
    structured = to_wire(sent, dialect.field)
    structured["freshness"] = to_wire(freshness, dialect.field)
    excess = _size(structured) + sum(_size(each.text) for each in blocks)
    _shorten(structured["results"], excess - _HIT_CHARACTERS * max(10, len(reply.hits)))
    return Reply(tuple(blocks), structured)


def _rounded(hit: Hit) -> Hit:
    return replace(hit, score=texts.rounded(hit.score), relevance=texts.rounded(hit.relevance))


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
    return output_schema(SearchReply, dialect, freshness=Freshness)
