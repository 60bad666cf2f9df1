"""The last step of every search: make the hits of the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qmd import search, values
from qmd.engine_text import sentences
from qmd.search.candidates import Candidate
from qmd.search.present.snippet import Snippet, make_snippet, needles
from qmd.search.query.language import ParsedQuery
from qmd.values import Context, Hit, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentAnchor

#: What a reply says none of whose hits is relevant enough.
NOTICE = "Nothing here seems to answer this; the nearest are:"
#: What a reply says whose search was ended by its deadline.
TOO_MANY = (
    "So many documents match that not all could be ranked in time: the latest ones were."
    " A rarer word finds more."
)


def present(
    reader: Reader,
    request: SearchRequest,
    query: ParsedQuery,
    judged: Sequence[Candidate],
    problem: str | None = None,
) -> SearchReply:
    """
    Make the reply: give each candidate its snippet, its context and, on request, an explanation.

    If even the best hit hardly answers the query, or if there is none because no document has a
    property to filter by, the reply has a notice that says so. A reply with
    a budget (``request.max_tokens``) may say in ``left_out`` that it has room for no more hits.

    Args:
        judged: Best first. `arranged` sorts, cuts and groups them if the request says so.
        query: The query whose words choose the lines of the snippets.
        problem: Sentences that say what a missing model or index took away; None for nothing.
    """
    best = judged[0] if judged else None
    names: Mapping[int, str] = {}
    if request.sort is not None or request.group_by is not None:
        judged, names = search.ordering.arranged(reader, request, judged)
    contexts = reader.contexts.all()
    chunks = [each.chunk_id for each in judged if each.chunk_id is not None]
    spans = reader.vectors.chunk_spans(chunks) if chunks else {}
    query_needles = needles(query)
    keys = frozenset[str]() if query.groups else query.property_keys
    of_tasks = _lines_of_tasks(reader, query, keys, judged)
    snippets = [
        _snippet(
            each,
            query_needles,
            spans.get(each.chunk_id or 0),
            keys,
            of_tasks.get(each.document_id),
        )
        for each in judged
    ]
    lines = {each.document_id: s.line for each, s in zip(judged, snippets, strict=True)}
    anchors = reader.documents.anchors_at(lines)
    hits = [
        Hit(
            docid=each.page.info.docid,
            file=each.page.info.file,
            title=each.page.info.title,
            score=each.score,
            context=join_contexts(contexts, each.page.info.collection, each.page.info.path),
            snippet=snippet.text,
            line=snippet.line,
            relevance=each.relevance,
            match=each.match,
            group=names.get(each.document_id),
            explain=_explanation(each, best) if request.explain and best else None,
            **_place(anchors.get(each.document_id)),
        )
        for each, snippet in zip(judged, snippets, strict=True)
    ]
    reply = SearchReply(
        request.query,
        tuple(hits),
        notice=_notice(reader, request, judged),
        degraded=_degraded(reader, problem),
    )
    if request.max_tokens is None:
        return reply
    budget = search.budget
    return budget.fit_hits(
        reply, request.max_tokens, budget.hit_tokens, frame_tokens=budget.FRAME_TOKENS
    )


def _notice(reader: Reader, request: SearchRequest, judged: Sequence[Candidate]) -> str | None:
    """What the reply says about its hits as a whole; None for nothing."""
    if judged:
        is_confident = any(each.relevance >= each.grounds.least_confidence for each in judged)
        return None if is_confident else NOTICE
    if not request.filters.properties:
        return None
    return search.ordering.missing_property(reader, request.filters.properties)


def _lines_of_tasks(
    reader: Reader, query: ParsedQuery, keys: frozenset[str], judged: Sequence[Candidate]
) -> Mapping[int, int]:
    """Document id → the line of its first task or fact, if the query asks for these alone."""
    if not keys or keys.isdisjoint(values.conditions.LINE_COLUMNS):
        return {}
    groups = [[each for each in group if not isinstance(each, str)] for group in query.either]
    return reader.properties.first_lines(groups, [each.document_id for each in judged])


def _snippet(
    candidate: Candidate,
    query_needles: Mapping[str, float],
    span: tuple[int, int, int] | None,
    keys: frozenset[str],
    line: int | None,
) -> Snippet:
    page = candidate.page
    chunk = None if span is None else span[:2]
    return make_snippet(
        page.text, page.body_start, query_needles, chunk, page.names, keys=keys, line=line
    )


def _place(anchor: DocumentAnchor | None) -> dict[str, str]:
    """The fields of a hit that say where in its file it is."""
    return {} if anchor is None else {"anchor": anchor.fragment, "place": anchor.place}


def _degraded(reader: Reader, problem: str | None) -> str | None:
    """What took something away from the reply; None for nothing."""
    if not reader.full_text.is_incomplete:
        return problem
    return sentences(problem, TOO_MANY)


def _explanation(hit: Candidate, best: Candidate) -> Mapping[str, Any]:
    """
    The parts of a score: score = blend * factor.

    The factor is the best hit's relevance / the best hit's blend; None if that blend is 0, because
    the score is then the best hit's relevance.
    """
    return {
        **hit.explanation,
        "blend": hit.blend,
        "factor": best.relevance / best.blend if best.blend else None,
        "score": hit.score,
        "relevance": {"value": hit.relevance, **hit.grounds._asdict()},
    }


def join_contexts(contexts: Sequence[Context], collection: str, path: str) -> str | None:
    """
    The texts of the contexts whose prefix the document lies below, joined by a blank line, or None.

    ``contexts`` are those of the whole database, from the global one to the most specific.
    """
    texts = [context.text for context in contexts if _applies_to(context, collection, path)]
    return "\n\n".join(texts) or None


def _applies_to(context: Context, collection: str, path: str) -> bool:
    if context.collection is None:
        return True
    if context.collection != collection:
        return False
    prefix = context.prefix
    return not prefix or path == prefix or path.startswith(prefix + "/")
