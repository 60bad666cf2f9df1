"""
What every search does: read the request, find, and make a reply of what was found.

`search` answers by words; `qmd.search.hybrid` answers by meaning and by both. They are
apart because `qmd search` must not load what only vectors need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from qmd.errors import InputError
from qmd.model import Filters, Hit, Match, SearchReply
from qmd.search import bm25, contexts, language, lexical, snippet
from qmd.sqlite import Connection
from qmd.store import contexts as stored_contexts
from qmd.store import documents, upkeep, vectors
from qmd.store import filters as store_filters

MAX_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One question; ``limit`` None means all hits."""

    query: str
    limit: int | None = 10
    min_score: float = 0.0
    filters: Filters = field(default_factory=Filters)
    explain: bool = False

    def check(self) -> None:
        """Raises InputError."""
        if self.limit is not None and not 1 <= self.limit <= MAX_LIMIT:
            raise InputError(
                f"The limit must be between 1 and {MAX_LIMIT}, not {self.limit}.",
                hint="On the command line --all lifts the limit.",
            )
        if not 0 <= self.min_score <= 1:
            raise InputError(
                f"The minimum score must be between 0 and 1, not {self.min_score}.",
                hint="Scores are 0 to 1, 1 best.",
            )


@dataclass(frozen=True, slots=True)
class Found:
    """A hit before its document is read; ``cosine`` already mapped to 0..1."""

    document: int
    score: float
    match: Match
    cosine: float = 0.0
    chunk: int | None = None
    explain: Mapping[str, Any] | None = None


def search(connection: Connection, request: Request) -> SearchReply:
    """Full text (BM25)."""
    request.check()
    query, where = read(connection, request)
    weights = lexical.Weights(connection, query)
    found = [
        Found(
            hit.document,
            hit.score,
            hit.match,
            explain={"terms": [term.text for term in query.terms], "bm25": round(hit.bm25, 6)},
        )
        for hit in lexical.search(connection, query, where, request.limit, weights)
    ]
    return reply(connection, request, query, found, weights)


def read(
    connection: Connection, request: Request
) -> tuple[language.ParsedQuery, store_filters.Where]:
    filters = request.filters
    if filters.after or filters.before:
        from qmd.search.dates import iso_date

        filters = replace(
            filters,
            after=iso_date(filters.after) if filters.after else None,
            before=iso_date(filters.before) if filters.before else None,
        )
    parsed = language.parse(request.query)
    tags = (*filters.tags, *parsed.tags)
    return parsed, store_filters.where(
        connection,
        replace(filters, tags=tags),
        either_tags=parsed.either_tags,
        no_tags=parsed.no_tags,
    )


def reply(
    connection: Connection,
    request: Request,
    query: language.ParsedQuery,
    found: Sequence[Found],
    weights: lexical.Weights | None = None,
) -> SearchReply:
    """``weights``: those of the query's words, where they were needed before."""
    chosen = [hit for hit in found if hit.score >= request.min_score]
    if request.limit is not None:
        chosen = chosen[: request.limit]
    wanted = snippet.needles(query)
    known = stored_contexts.everything(connection)
    chunks = [hit.chunk for hit in chosen if hit.chunk is not None]
    spans = vectors.spans(connection, chunks) if chunks else {}
    loose = any(hit.match == "relaxed" for hit in chosen)
    held = (weights or lexical.Weights(connection, query)).words if loose else {}
    hits = []
    for hit in chosen:
        page = documents.page(connection, hit.document)
        span = spans.get(hit.chunk) if hit.chunk is not None else None
        shown = snippet.make(page.text, page.body_start, wanted, span[:2] if span else None)
        hits.append(
            Hit(
                docid=page.info.docid,
                collection=page.info.collection,
                path=page.info.path,
                title=page.info.title,
                score=round(hit.score, 4),
                context=contexts.of(known, page.info.collection, page.info.path),
                snippet=shown.text,
                line=shown.line,
                relevance=round(_relevance(hit, held, page), 4),
                match=hit.match,
                explain=hit.explain if request.explain else None,
            )
        )
    return SearchReply(
        request.query, tuple(hits), needs_embedding=upkeep.documents_waiting(connection)
    )


def _relevance(hit: Found, weights: Mapping[str, bm25.Word], page: documents.Page) -> float:
    """
    How much of the question the document answers, whatever its rank: all its words, the
    share of them that it holds, or its nearness in meaning.
    """
    if hit.match == "exact":
        return 1.0
    if hit.match == "relaxed":
        text = f"{page.info.path}\n{page.info.title}\n{page.text}"
        return max(hit.cosine, 0.9 * lexical.coverage(weights, text))
    return hit.cosine
