"""
The reply of a search as a tool: ranked hits, short enough for a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from qmd.operations import texts
from qmd.operations.definition import Replied
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.records import replace
from qmd.search.budget import shorten_snippets
from qmd.search.present import crop_snippet
from qmd.values import Freshness, Hit, SearchReply
from qmd.values.search import rounded
from qmd.values.wire import to_wire

#: The most characters of a hit on average, so that ten hits take 4,000 of a model's context.
_HIT_CHARACTERS = 400
#: The same for the texts, in bytes: ten hits take at most 3.5 KB, whatever their language.
_TEXT_BYTES = 358
_LEAST_BYTES = 60  # of a snippet that shows something
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def reply(replied: Replied, dialect: Dialect) -> Reply:
    """What a client gets of the hits: texts, and with them how far the index is behind the disk."""
    assert replied.kb is not None
    sent: SearchReply = replied.value
    freshness = replied.kb.freshness(embeddings_pending=sent.needs_embedding)
    by_words = replied.operation == "search"
    sent = replace(
        sent,
        hits=tuple(map(_rounded, sent.hits)),
        needs_embedding=0 if by_words else sent.needs_embedding,
    )
    structured: dict[str, Any] = to_wire(sent, dialect.field)
    structured["freshness"] = to_wire(freshness, dialect.field)
    has_budget = "max_tokens" in replied.arguments
    excess = _size(structured) - _HIT_CHARACTERS * max(10, len(sent.hits))
    if excess > 0 and not has_budget:
        sent = replace(sent, hits=tuple(shorten_snippets(sent.hits, excess, _size)))
        for result, hit in zip(structured["results"], sent.hits, strict=True):
            result["snippet"] = hit.snippet
    blocks = map(TextBlock, _texts(sent, freshness, dialect, has_budget))
    return Reply(tuple(islice(blocks, None if dialect.takes_all_texts else 1)), structured)


def _texts(
    reply: SearchReply, fresh: Freshness, dialect: Dialect, has_budget: bool
) -> Iterator[str]:
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
    if fresh.indexing and not reply.hits:
        yield f"Note: {texts.indexing_note(fresh)}"


def _fitted(reply: SearchReply, summary: str) -> Sequence[Hit]:
    """The hits with snippets that fit into the text: the best line, from the last hit upwards."""
    snippets = sum(_bytes(hit.snippet) for hit in reply.hits)
    frame = _bytes(summary) + _bytes(texts.hits_text(reply.hits, reply.notice)) - snippets
    room = _TEXT_BYTES * max(10, len(reply.hits)) - frame
    excess = snippets - room
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
    # Making an encoder, as `json.dumps` does, takes longer than encoding a snippet.
    return len(_COMPACT.encode(value))
