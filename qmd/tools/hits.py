"""The tools search, vsearch and query, which return ranked hits, short enough for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.search.present.budget import shorten_snippets
from qmd.search.present.snippet import crop_snippet
from qmd.tools.arguments import ValueArguments
from qmd.tools.schemas import output_schema
from qmd.values import Hit, SearchCommand, SearchReply, SearchRequest
from qmd.values.search import rounded
from qmd.values.wire import to_wire

SearchOptions = ValueArguments[SearchRequest]

_HIT_CHARACTERS = 400
"""The most characters of a hit on average, so that ten hits take 4,000 of a model's context."""
_TEXT_BYTES = 409
"""The same for the texts, in bytes: ten hits take at most 4 KB, whatever their language."""
_LEAST_BYTES = 60  # of a snippet that shows something


def search(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "search", arguments, dialect)


def vsearch(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "vsearch", arguments, dialect)


def query(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "query", arguments, dialect)


def _answer(
    kb: KnowledgeBase, command: SearchCommand, arguments: SearchOptions, dialect: Dialect
) -> Reply:
    request = arguments.value()
    reply = kb.answer(command, request)
    freshness = kb.freshness(embeddings_pending=reply.needs_embedding)
    sent = replace(
        reply,
        hits=tuple(map(_rounded, reply.hits)),
        needs_embedding=0 if command == "search" else reply.needs_embedding,
    )
    structured: dict[str, Any] = to_wire(sent, dialect.field)
    structured["freshness"] = to_wire(freshness, dialect.field)
    has_budget = request.max_tokens is not None
    excess = _size(structured) - _HIT_CHARACTERS * max(10, len(reply.hits))
    if excess > 0 and not has_budget:
        sent = replace(sent, hits=tuple(shorten_snippets(sent.hits, excess, _size)))
        structured["results"] = to_wire(sent.hits, dialect.field)
    return Reply(tuple(map(TextBlock, _texts(sent, dialect, has_budget))), structured)


def _texts(reply: SearchReply, dialect: Dialect, has_budget: bool) -> Iterator[str]:
    summary = ""
    if reply.hits or not reply.left_out:
        query = texts.shortened_query(reply.query) if has_budget else reply.query
        summary = texts.search_summary(reply.hits, query)
        yield summary
    if reply.hits:
        shown = reply.hits if has_budget else _fitted(reply, summary)
        yield texts.hits_text(shown, reply.notice)
    elif reply.notice:
        yield f"Note: {reply.notice}"
    if reply.left_out:
        yield texts.hits_left_out(reply.left_out, dialect)
    if reply.degraded is not None:
        yield f"Note: {reply.degraded}"


def _fitted(reply: SearchReply, summary: str) -> Sequence[Hit]:
    """The hits with snippets that fit into the text: the best line, from the last hit upwards."""
    bare = [replace(hit, snippet="") for hit in reply.hits]
    frame = _bytes(summary) + _bytes(texts.hits_text(bare, reply.notice))
    room = _TEXT_BYTES * max(10, len(bare)) - frame
    excess = sum(_bytes(hit.snippet) for hit in reply.hits) - room
    hits = shorten_snippets(reply.hits, excess, _bytes)
    if sum(_bytes(hit.snippet) for hit in hits) <= room:
        return hits
    most = max(_LEAST_BYTES, room // len(hits))
    return [
        hit
        if _bytes(hit.snippet) <= most
        else replace(hit, snippet=crop_snippet(hit.snippet, reply.query, most))
        for hit in hits
    ]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _rounded(hit: Hit) -> Hit:
    return replace(hit, score=rounded(hit.score), relevance=rounded(hit.relevance))


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def hits_schema(dialect: Dialect) -> dict[str, Any]:
    # The tool status describes freshness in full; here the listing must stay short.
    return output_schema(SearchReply, dialect, freshness=dict[str, object])
