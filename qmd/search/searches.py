"""
The three searches, each a composition of the same steps::

    parse → retrieve → rank → lead → judge → present → spelling

`search` keeps the order of its retriever; in `vsearch` no names lead. A retriever makes the
candidates, and each later step fills in what it learns of them (`qmd.search.candidates`). A step
that could do only a part of its work says so in a ``problem``; `SearchReply.degraded` joins these
sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from qmd import search
from qmd.engine_text import sentences, with_cause
from qmd.records import replace
from qmd.search.by_words import all_matches, explain, retrieve_by_words
from qmd.search.judge import judge, lead_by_name
from qmd.search.present import present
from qmd.search.question import expanded, parse_for_both, parse_for_meaning, parse_request
from qmd.search.words import weigh_words
from qmd.values import SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.search.question import SearchModels
    from qmd.search.words import QueryWords
    from qmd.store import Reader, Selection


def search_by_words(reader: Reader, request: SearchRequest) -> SearchReply:
    """
    `search`: full text (BM25).

    With `SearchRequest.sort` all exact hits are sorted; the relaxed ones if there are none.
    """
    question = parse_request(reader, request)
    words = weigh_words(reader, question.query)
    selection, named, limits = question.selection, question.named, request
    if request.sort is None:
        candidates = retrieve_by_words(reader, words, selection, question.most, named)
    else:
        candidates = search.listing.to_judge(reader, request, all_matches(reader, words, selection))
        limits = replace(request, limit=None)  # it cuts the sorted hits
    if request.explain:
        for candidate in candidates:
            candidate.explanation = explain(candidate, words)
    candidates = lead_by_name(candidates, named, with_explanation=request.explain)
    judged = judge(reader, limits, candidates, words, named)
    reply = present(reader, request, question.query, judged)
    again = partial(search_by_words, reader)
    return _spelled(reader, request, words, selection, reply, again)


def search_by_meaning(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `vsearch`: vectors.

    A query without text, such as ``tag:work``, has no meaning to compare. The reply is then that
    of `search`.

    Raises:
        VectorIndexMissingError, VectorsUnavailableError, ModelMissingError, ModelMismatchError.
    """
    question = parse_for_meaning(reader, request)
    search.meaning.retrieval.require_index(reader, None)
    text = question.text
    if not text:
        return search_by_words(reader, request)
    embedded, nearest = search.meaning.retrieval.retrieve_by_meaning(reader, text, question, models)
    question = expanded(question, models)
    others, error = search.meaning.retrieval.retrieve_texts_by_meaning(
        reader, question.for_meaning[1:], question, models
    )
    problem = question.problem
    if error is not None:
        problem = with_cause("Expanded in part", error.message)
    candidates = search.rank.rank_by_nearness(reader, request, embedded, nearest, others)
    words = weigh_words(reader, question.query)
    judged = judge(reader, request, candidates, words, question.named)
    reply = present(reader, request, question.query, judged, problem)
    again = partial(search_by_meaning, reader, models=models)
    return _spelled(reader, request, words, question.selection, reply, again)


def search_by_both(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `query`: full text and vectors, ranked by the evidence of both.

    Without vectors full text answers alone, and `SearchReply.degraded` says why. For a query
    without text, such as ``tag:work``, the reply is that of `search`.
    """
    question = parse_for_both(reader, request, models)
    if question.list_query is not None:
        listed = search_by_words(reader, replace(request, query=question.list_query))
        return replace(listed, query=request.query)
    retrieved = search.retrieve.retrieve(reader, question, models)
    ranked, order = search.rank.rank(reader, request, question, retrieved, models)
    words, named = retrieved.words, question.named
    candidates = lead_by_name(ranked, named, with_explanation=request.explain)
    judged = judge(reader, request, candidates, words, named, order=order)
    degraded = sentences(question.problem, *retrieved.problems) or None
    reply = present(reader, request, question.query, judged, degraded)
    again = partial(search_by_both, reader, models=models)
    return _spelled(reader, request, words, question.selection, reply, again)


def _spelled(
    reader: Reader,
    request: SearchRequest,
    words: QueryWords,
    selection: Selection,
    reply: SearchReply,
    again: Callable[[SearchRequest], SearchReply],
) -> SearchReply:
    """Say what may have been meant, if no document has a word, or no hit is left."""
    has_all_words = all(weighed.documents for weighed in words.weights.values())
    if not request.spelling or (has_all_words and reply.hits):
        return reply
    reply = search.spelling.with_spelling(reader, request, words, selection, reply, again)
    if reply.hits:
        return reply
    return search.spelling.with_empty_filter(reader, request, words.query, reply, again)
