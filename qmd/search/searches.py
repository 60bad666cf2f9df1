"""
The three searches, each a composition of the same steps::

    parse → retrieve → fuse → rerank → calibrate → present

Each step takes values and returns a value; what a step could not do is a ``problem`` in its
result, and the reply tells it in `degraded`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmd.search.candidates import blended_candidates, lexical_candidates, semantic_candidates
from qmd.search.expand import expand
from qmd.search.fuse import blend, fuse_by_nearness, reciprocal_rank_fusion
from qmd.search.meaning.retrieval import (
    compare_to_question,
    require_index,
    retrieve_by_meaning,
    retrieve_texts_by_meaning,
)
from qmd.search.models import SearchModels
from qmd.search.parse import parse_and_expand, parse_request, with_exclusions
from qmd.search.present.relevance import calibrate
from qmd.search.present.reply import present
from qmd.search.rerank import Reranking, rerank
from qmd.search.retrieve import retrieve
from qmd.search.words.retrieval import retrieve_by_words
from qmd.search.words.weights import weigh_words
from qmd.values import SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader


def search_by_words(reader: Reader, request: SearchRequest) -> SearchReply:
    """`search`: full text (BM25)."""
    question = parse_request(reader, request)
    words = weigh_words(reader, question.query)
    hits = retrieve_by_words(reader, words, question.scope.selection, question.scope.depth)
    candidates = lexical_candidates(hits, words, with_explanation=request.explain)
    calibrated = calibrate(reader, request, candidates, words)
    return present(reader, request, question.query, calibrated)


def search_by_meaning(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `vsearch`: vectors. A query that only narrows has no meaning to compare: it lists what
    `search` lists.

    Raises:
        VectorIndexMissingError, VectorsUnavailableError, ModelMissingError, ModelMismatchError.
    """
    question = with_exclusions(reader, parse_request(reader, request))
    require_index(reader, None)
    if not question.query.text:
        return search_by_words(reader, request)
    original = retrieve_by_meaning(reader, question.query.text, question.scope, models)
    expanded = expand(question.query.text, request.intent, models)
    others = retrieve_texts_by_meaning(reader, expanded.for_meaning, question.scope, models)
    nearest = fuse_by_nearness(original, compare_to_question(reader, original, others.runs))
    candidates = semantic_candidates(nearest, original.spec, with_explanation=request.explain)
    words = weigh_words(reader, question.query)
    calibrated = calibrate(reader, request, candidates, words)
    degraded = f"Expanded in part: {others.problem}" if others.problem else expanded.problem
    return present(reader, request, question.query, calibrated, degraded)


def search_by_both(reader: Reader, request: SearchRequest, models: SearchModels) -> SearchReply:
    """
    `query`: words and meaning, fused by reciprocal rank and reranked; full text alone where
    vectors are missing, saying so. A query that only narrows lists what `search` lists.
    """
    plan = parse_and_expand(reader, request, models)
    if plan.list_query is not None:
        listed = search_by_words(reader, replace(request, query=plan.list_query))
        return replace(listed, query=request.query)
    retrieved = retrieve(reader, plan, models)
    fused = reciprocal_rank_fusion(retrieved.runs)
    best_ids = [each.document for each in fused[: request.candidates]]
    reranking = (
        rerank(reader, plan.prompt, retrieved, best_ids, models) if request.rerank else Reranking()
    )
    blended = blend(fused, reranking.scores)[: request.depth]
    candidates = blended_candidates(blended, retrieved, reranking, with_explanation=request.explain)
    calibrated = calibrate(reader, request, candidates, retrieved.words)
    problems = (plan.problem, retrieved.problem, reranking.problem)
    degraded = " ".join(problem for problem in problems if problem) or None
    return present(reader, request, plan.query, calibrated, degraded)
