"""The tools search, vsearch and query, which return ranked hits, short enough for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.tools import texts
from qmd.tools.arguments import ValueArguments
from qmd.tools.definition import Reply, TextBlock
from qmd.tools.schemas import output_schema
from qmd.tools.texts import Dialect
from qmd.values import Hit, SearchReply, SearchRequest
from qmd.values.search import rounded
from qmd.values.wire import to_wire

SearchOptions = ValueArguments[SearchRequest]

_HIT_CHARACTERS = 400
"""The most characters of a hit on average, so that ten hits take 4,000 of a model's context."""

_CROPPED_CHARACTERS = 150


def search(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("search", arguments.value()), dialect)


def vsearch(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("vsearch", arguments.value()), dialect, vectors=True)


def query(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _reply(kb, kb.answer("query", arguments.value()), dialect, vectors=True)


def _reply(
    kb: KnowledgeBase, reply: SearchReply, dialect: Dialect, *, vectors: bool = False
) -> Reply:
    """``vectors``: whether the reply says how many documents have no vectors yet."""
    freshness = kb.freshness(embeddings_pending=reply.needs_embedding)
    sent = replace(
        reply,
        hits=tuple(map(_rounded, reply.hits)),
        needs_embedding=reply.needs_embedding if vectors else 0,
    )
    structured: dict[str, Any] = to_wire(sent, dialect.field)
    structured["freshness"] = to_wire(freshness, dialect.field)
    excess = _size(structured) - _HIT_CHARACTERS * max(10, len(reply.hits))
    if excess > 0:
        sent = replace(sent, hits=tuple(_shortened(sent.hits, excess)))
        structured["results"] = to_wire(sent.hits, dialect.field)
    return Reply(tuple(map(TextBlock, _texts(sent))), structured)


def _texts(reply: SearchReply) -> Iterator[str]:
    yield texts.search_summary(reply.hits, reply.query)
    if reply.hits:
        yield texts.hits_text(reply.hits, reply.notice)
    if reply.degraded is not None:
        yield f"Note: {reply.degraded}"


def _rounded(hit: Hit) -> Hit:
    return replace(hit, score=rounded(hit.score), relevance=rounded(hit.relevance))


def _shortened(hits: Sequence[Hit], excess: int) -> list[Hit]:
    """
    Cut snippets to their best line, from the last hit upwards, until enough characters are saved.

    ``excess``: characters to save.
    """
    shortened: list[Hit] = []
    for hit in reversed(hits):
        keep = excess <= 0 or hit.explain is not None
        snippet = hit.snippet if keep else _best_line(hit)
        excess -= _size(hit.snippet) - _size(snippet)
        shortened.append(replace(hit, snippet=snippet))
    return shortened[::-1]


def _best_line(hit: Hit) -> str:
    """
    The best line of a snippet, shortened to `_CROPPED_CHARACTERS` if it was cropped before.

    A cropped line ends in an ellipsis and has its match in the first third, which stays.
    """
    start = f"{hit.line}: "
    lines = hit.snippet.split("\n")
    line = next((line for line in lines if line.startswith(start)), hit.snippet)
    return line[:_CROPPED_CHARACTERS].rstrip("…") + "…" if line.endswith("…") else line


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def hits_schema(dialect: Dialect) -> dict[str, Any]:
    # The tool status describes freshness in full; here the listing must stay short.
    return output_schema(SearchReply, dialect, freshness=dict[str, object])
