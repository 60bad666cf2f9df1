"""
What every search does: read the request, find, and make a reply of what was found.

`search` answers by words; `qmd.search.hybrid` answers by meaning and by both. They are
apart because `qmd search` must not load what only vectors need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from qmd.parse import segment
from qmd.search.present import contexts, relevance, snippet
from qmd.search.query import language
from qmd.search.words import bm25
from qmd.search.words import retrieval as lexical
from qmd.store.documents import FullDocument
from qmd.values import Hit, Match, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader, Selection


@dataclass(frozen=True, slots=True)
class Found:
    """
    A hit before its document is read.

    ``words`` of the query that it is known to hold, if full text has found it by them;
    ``near``: see `semantic.level`.
    """

    document: int
    score: float
    match: Match
    words: Collection[str] = ()
    near: float | None = None
    chunk: int | None = None
    explain: Mapping[str, Any] | None = None


def search(reader: Reader, request: SearchRequest) -> SearchReply:
    """Full text (BM25)."""
    request.check()
    query, selection = read(reader, request)
    weights = lexical.Weights(reader, query)
    found = [
        Found(
            hit.document,
            hit.score,
            hit.match,
            hit.words,
            explain=_explain(hit, query, weights) if request.explain else None,
        )
        for hit in lexical.search(reader, query, selection, request.depth, weights)
    ]
    return reply(reader, request, query, found, weights)


def _explain(
    hit: lexical.LexicalHit, query: language.ParsedQuery, weights: lexical.Weights
) -> dict[str, Any]:
    """
    The parts of a score: bm25 = the sum of the words' scores (FTS5's own, where phrases, fields
    or signs were asked for); score = base + 0.5 * bm25 / (bm25 + half).
    """
    return {
        "terms": [
            term.text if len(term.text) <= language.LEAD else f"{term.lead}…"
            for term in query.terms
        ],
        "words": [
            {
                "word": word,
                "documents": weighed.documents,
                "idf": weighed.idf,
                "score": hit.words[word],
            }
            for word, weighed in weights.words.items()
            if word in hit.words
        ],
        "bm25": hit.bm25,
        "match": hit.match,
        "base": lexical.BASE[hit.match],
        "half": lexical.HALF,
        "score": hit.score,
    }


def read(reader: Reader, request: SearchRequest) -> tuple[language.ParsedQuery, Selection]:
    filters = request.filters
    if filters.after or filters.before:
        from qmd.search.query.dates import iso_date

        filters = replace(
            filters,
            after=iso_date(filters.after) if filters.after else None,
            before=iso_date(filters.before) if filters.before else None,
        )
    parsed = language.parse(request.query)
    tags = (*filters.tags, *parsed.tags)
    return parsed, reader.select(
        replace(filters, tags=tags),
        either_tags=parsed.either_tags,
        no_tags=parsed.no_tags,
    )


def reply(
    reader: Reader,
    request: SearchRequest,
    query: language.ParsedQuery,
    found: Sequence[Found],
    weights: lexical.Weights | None = None,
) -> SearchReply:
    """``weights``: those of the query's words, where they were needed before."""
    good = [hit for hit in found if hit.score >= request.min_score]
    words = (weights or lexical.Weights(reader, query)).words if good else {}
    chosen = list(islice(_relevant(reader, request, good, words), request.limit))
    wanted = snippet.needles(query)
    known = reader.contexts.all()
    chunks = [hit.chunk for hit, _, _ in chosen if hit.chunk is not None]
    spans = reader.vectors.chunk_spans(chunks) if chunks else {}
    hits = []
    for hit, page, evidence in chosen:
        span = spans.get(hit.chunk) if hit.chunk is not None else None
        shown = snippet.make(page.text, page.body_start, wanted, span[:2] if span else None)
        hits.append(
            Hit(
                docid=page.info.docid,
                file=page.info.file,
                title=page.info.title,
                score=round(hit.score, 4),
                context=contexts.of(known, page.info.collection, page.info.path),
                snippet=shown.text,
                line=shown.line,
                relevance=round(relevance.estimate(evidence), 4),
                match=hit.match,
                explain=_with(hit.explain, evidence) if request.explain else None,
            )
        )
    return SearchReply(
        request.query, tuple(hits), needs_embedding=reader.upkeep.count_documents_waiting()
    )


def _relevant(
    reader: Reader,
    request: SearchRequest,
    found: Sequence[Found],
    words: Mapping[str, bm25.Word],
) -> Iterator[tuple[Found, FullDocument, relevance.Evidence]]:
    for hit in found[: request.depth]:
        page = reader.documents.full(hit.document)
        evidence = relevance.Evidence(_coverage(hit, words, page), hit.near)
        if relevance.estimate(evidence) >= request.min_relevance:
            yield hit, page, evidence


def _coverage(hit: Found, words: Mapping[str, bm25.Word], page: FullDocument) -> float | None:
    """How much of the query's words the document holds; None where only signs are asked for."""
    if hit.match == "exact":
        return 1.0
    if hit.words:
        return lexical.coverage(words, hit.words)
    if not words:
        return None
    folded = segment.fold(f"{page.info.path}\n{page.info.title}\n{page.text}")
    return lexical.coverage(words, [word for word in words if lexical.stem(word) in folded])


def _with(explain: Mapping[str, Any] | None, evidence: relevance.Evidence) -> dict[str, Any]:
    return {
        **(explain or {}),
        "relevance": {"coverage": evidence.coverage, "nearness": evidence.near},
    }
