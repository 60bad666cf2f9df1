"""The last step of every search: make the hits of the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qmd.search.present.contexts import join_contexts
from qmd.search.present.relevance import Calibrated
from qmd.search.present.snippet import make_snippet, needles
from qmd.search.query.language import ParsedQuery
from qmd.values import Hit, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader


def present(
    reader: Reader,
    request: SearchRequest,
    query: ParsedQuery,
    calibrated: Sequence[Calibrated],
    problem: str | None = None,
) -> SearchReply:
    """
    Make the reply: give each candidate its snippet, its context and, on request, an explanation.

    Args:
        query: The query whose words choose the lines of the snippets.
        problem: Sentences that say what a missing model or index took away; None for nothing.
    """
    contexts = reader.contexts.all()
    chunks = [each.candidate.chunk_id for each in calibrated if each.candidate.chunk_id is not None]
    spans = reader.vectors.chunk_spans(chunks) if chunks else {}
    query_needles = needles(query)
    hits = []
    for each in calibrated:
        candidate, page = each.candidate, each.page
        span = spans.get(candidate.chunk_id) if candidate.chunk_id is not None else None
        snippet = make_snippet(
            page.text, page.body_start, query_needles, span[:2] if span else None
        )
        hits.append(
            Hit(
                docid=page.info.docid,
                file=page.info.file,
                title=page.info.title,
                score=round(candidate.blend, 4),
                context=join_contexts(contexts, page.info.collection, page.info.path),
                snippet=snippet.text,
                line=snippet.line,
                relevance=round(each.relevance, 4),
                match=candidate.match,
                explain=_explanation(each) if request.explain else None,
            )
        )
    return SearchReply(
        request.query, tuple(hits), problem, needs_embedding=reader.upkeep.count_documents_waiting()
    )


def _explanation(calibrated: Calibrated) -> Mapping[str, Any]:
    evidence = calibrated.evidence
    return {
        **(calibrated.candidate.explanation or {}),
        "blend": calibrated.candidate.blend,
        "relevance": {"coverage": evidence.coverage, "nearness": evidence.near},
    }
