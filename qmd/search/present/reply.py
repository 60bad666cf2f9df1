"""The last step of every search: make the hits of the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qmd.search.present.contexts import join_contexts
from qmd.search.present.relevance import LEAST_CONFIDENCE, Calibrated
from qmd.search.present.snippet import make_snippet, needles
from qmd.search.query.language import ParsedQuery
from qmd.values import Hit, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader

#: What a reply says whose search was ended by its deadline.
TOO_MANY = (
    "So many documents match that not all could be ranked in time: the latest ones were."
    " A rarer word finds more."
)
NOTICE = "Nothing here seems to answer this; the nearest are:"


def present(
    reader: Reader,
    request: SearchRequest,
    query: ParsedQuery,
    calibrated: Sequence[Calibrated],
    problem: str | None = None,
) -> SearchReply:
    """
    Make the reply: give each candidate its snippet, its context and, on request, an explanation.

    If even the best hit hardly answers the query, or if there is none because no document has a
    property to filter by, the reply has a notice that says so. A reply with
    a budget (``request.max_tokens``) may say in ``left_out`` that it has room for no more hits.

    Args:
        calibrated: Best first. `arranged` sorts, cuts and groups them if the request says so.
        query: The query whose words choose the lines of the snippets.
        problem: Sentences that say what a missing model or index took away; None for nothing.
    """
    best = calibrated[0] if calibrated else None
    names: Mapping[int, str] = {}
    if request.sort is not None or request.group_by is not None:
        from qmd.search.ordering import arranged

        calibrated, names = arranged(reader, request, calibrated)
    contexts = reader.contexts.all()
    chunks = [each.candidate.chunk_id for each in calibrated if each.candidate.chunk_id is not None]
    spans = reader.vectors.chunk_spans(chunks) if chunks else {}
    query_needles = needles(query)
    keys = frozenset[str]() if query.groups else query.property_keys
    hits = []
    for each in calibrated:
        candidate, page = each.candidate, each.page
        span = spans.get(candidate.chunk_id) if candidate.chunk_id is not None else None
        snippet = make_snippet(
            *(page.text, page.body_start, query_needles, span[:2] if span else None, page.names),
            keys=keys,
        )
        hits.append(
            Hit(
                docid=page.info.docid,
                file=page.info.file,
                title=page.info.title,
                score=each.score,
                context=join_contexts(contexts, page.info.collection, page.info.path),
                snippet=snippet.text,
                line=snippet.line,
                relevance=each.relevance,
                match=candidate.match,
                group=names.get(candidate.document_id),
                explain=_explanation(each, best) if request.explain and best else None,
            )
        )
    reply = SearchReply(
        request.query,
        tuple(hits),
        notice=_notice(reader, request, calibrated),
        degraded=_degraded(reader, problem),
        needs_embedding=reader.upkeep.count_contents_waiting(),
    )
    if request.max_tokens is None:
        return reply
    # Few searches have a budget, and `qmd search` pays for each import.
    from qmd.search.present.budget import FRAME_TOKENS, fit_hits, hit_tokens

    return fit_hits(reply, request.max_tokens, hit_tokens, frame_tokens=FRAME_TOKENS)


def _degraded(reader: Reader, problem: str | None) -> str | None:
    """What took something away from the reply; None for nothing."""
    if not reader.full_text.is_incomplete:
        return problem
    return TOO_MANY if problem is None else f"{problem} {TOO_MANY}"


def _notice(reader: Reader, request: SearchRequest, calibrated: Sequence[Calibrated]) -> str | None:
    """What the reply says about its hits as a whole; None for nothing."""
    if calibrated:
        is_confident = any(each.relevance >= LEAST_CONFIDENCE for each in calibrated)
        return None if is_confident else NOTICE
    if not request.filters.properties:
        return None
    from qmd.search.ordering import missing_property

    return missing_property(reader, request.filters.properties)


def _explanation(hit: Calibrated, best: Calibrated) -> Mapping[str, Any]:
    """
    The parts of a score: score = blend * factor.

    The factor is the best hit's relevance / the best hit's blend; None if that blend is 0, because
    the score is then the best hit's relevance.
    """
    best_blend = best.candidate.blend
    return {
        **(hit.candidate.explanation or {}),
        "blend": hit.candidate.blend,
        "factor": best.relevance / best_blend if best_blend else None,
        "score": hit.score,
        "relevance": {
            "value": hit.relevance,
            "coverage": hit.evidence.coverage,
            "nearness": hit.evidence.near,
            "lead": hit.evidence.lead,
            "documents": hit.evidence.documents,
            "title": hit.evidence.title,
            "held": hit.evidence.held,
            "rest": hit.evidence.rest,
            "script": hit.evidence.script,
        },
    }
