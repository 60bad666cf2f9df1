"""
The three searches, each a composition of the same steps::

    parse → retrieve → rank → calibrate → present

Each step takes values and returns a value. A step that could do only a part of its work says so in
the ``problem`` of its result. `SearchReply.degraded` joins these sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from qmd.search.named import lead_by_name
from qmd.search.parse import parse_request, with_exclusions
from qmd.search.present.relevance import calibrate
from qmd.search.present.reply import present
from qmd.search.words.candidates import lexical_candidates
from qmd.search.words.retrieval import all_matches, retrieve_by_words
from qmd.search.words.weights import weigh_words
from qmd.values import SearchReply, SearchRequest

# The steps that need vectors are imported inside functions: `qmd search` uses none of them, and
# importing them would make it a fifth slower.
if TYPE_CHECKING:
    from qmd.search.models import SearchModels
    from qmd.search.words.weights import QueryWords
    from qmd.store import Reader, Selection


def search_by_words(reader: Reader, request: SearchRequest) -> SearchReply:
    """
    `search`: full text (BM25).

    With `SearchRequest.sort` all exact hits are sorted; the relaxed ones if there are none.
    """
    question = parse_request(reader, request)
    words = weigh_words(reader, question.query)
    scope, named, limits = question.scope, question.named, request
    if request.sort is None:
        hits = retrieve_by_words(reader, words, scope.selection, scope.depth, named)
    else:
        from qmd.search.ordering import to_calibrate

        hits = to_calibrate(reader, request, all_matches(reader, words, scope.selection))
        limits = replace(request, limit=None)  # it cuts the sorted hits
    candidates = lexical_candidates(hits, words, with_explanation=request.explain)
    candidates = lead_by_name(candidates, named, with_explanation=request.explain)
    calibrated = calibrate(reader, limits, candidates, words, named)
    reply = present(reader, request, question.query, calibrated)

    def again(other: SearchRequest) -> SearchReply:
        return search_by_words(reader, other)

    return _spelled(reader, request, words, scope.selection, reply, again)


def search_by_meaning(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `vsearch`: vectors.

    A query without text, such as ``tag:work``, has no meaning to compare. The reply is then that
    of `search`.

    Raises:
        VectorIndexMissingError, VectorsUnavailableError, ModelMissingError, ModelMismatchError.
    """
    from qmd.search.fuse import fuse_by_nearness
    from qmd.search.meaning import retrieval
    from qmd.search.meaning.candidates import semantic_candidates
    from qmd.search.plan import expand

    question = with_exclusions(reader, parse_request(reader, request))
    retrieval.require_index(reader, None)
    text = question.query.text
    if not text:
        return search_by_words(reader, request)
    original = retrieval.retrieve_by_meaning(reader, text, question.scope, models)
    expanded = expand(text, request.intent, models)
    others = retrieval.retrieve_expansions(reader, original, expanded, question.scope, models)
    nearest = fuse_by_nearness(original, others.runs)
    candidates = semantic_candidates(nearest, original.spec, with_explanation=request.explain)
    words = weigh_words(reader, question.query)
    calibrated = calibrate(reader, request, candidates, words, question.named)
    reply = present(reader, request, question.query, calibrated, others.problem)

    def again(other: SearchRequest) -> SearchReply:
        return search_by_meaning(reader, other, models)

    return _spelled(reader, request, words, question.scope.selection, reply, again)


def search_by_both(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `query`: full text and vectors, ranked by the evidence of both.

    Without vectors full text answers alone, and `SearchReply.degraded` says why. For a query
    without text, such as ``tag:work``, the reply is that of `search`.
    """
    from qmd.search.plan import plan_request
    from qmd.search.rank import rank
    from qmd.search.retrieve import retrieve

    plan = plan_request(reader, request, models)
    if plan.list_query is not None:
        listed = search_by_words(reader, replace(request, query=plan.list_query))
        return replace(listed, query=request.query)
    retrieved = retrieve(reader, plan, models)
    ranking = rank(reader, request, plan, retrieved, models)
    candidates = lead_by_name(ranking.candidates, plan.named, with_explanation=request.explain)
    calibrated = calibrate(
        reader,
        request,
        candidates,
        retrieved.words,
        plan.named,
        is_measured=ranking.is_measured,
    )
    problems = (plan.problem, retrieved.problem, ranking.problem)
    degraded = " ".join(problem for problem in problems if problem) or None
    reply = present(reader, request, plan.query, calibrated, degraded)

    def again(other: SearchRequest) -> SearchReply:
        return search_by_both(reader, other, models)

    return _spelled(reader, request, retrieved.words, plan.scope.selection, reply, again)


def _spelled(
    reader: Reader,
    request: SearchRequest,
    words: QueryWords,
    selection: Selection,
    reply: SearchReply,
    again: Callable[[SearchRequest], SearchReply],
) -> SearchReply:
    """The last step: say what may have been meant, if no document has a word, or no hit is left."""
    has_all_words = all(weighed.documents for weighed in words.weights.values())
    if not request.spelling or (has_all_words and reply.hits):
        return reply
    # Few searches need it, and `qmd search` pays for each import.
    from qmd.search.spelling import with_empty_filter, with_spelling

    reply = with_spelling(reader, request, words, selection, reply, again)
    if reply.hits:
        return reply
    return with_empty_filter(reader, request, words.query, reply, again)
