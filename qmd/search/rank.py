"""
Puts the documents of all runs of `vsearch` and `query` in order.

For `query` there are two orders. Where there are vectors, the evidence decides
(`qmd.search.evidence`); a reranker that the user has named is a part of it. Without vectors, and
with `--no-rerank`, the fused ranks decide: several runs are merged into one order by reciprocal
rank, into which the scores of a reranker are mixed. A reranker reads a passage of each document.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from math import fsum
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError
from qmd.parse.lines import line_starts
from qmd.records import replace
from qmd.search import meaning
from qmd.search.candidates import EXPANSION_WEIGHT, ORIGINAL_WEIGHT, Candidate, Run
from qmd.search.evidence import (
    measure_by_model,
    measure_documents,
    rank_by_evidence,
    unembedded_ids_of,
)
from qmd.search.present import make_snippet, needles
from qmd.search.question import Question, SearchModels
from qmd.search.retrieve import Retrieved
from qmd.values import ModelSpec, SearchRequest

if TYPE_CHECKING:
    from qmd.inference.protocols import Reranker
    from qmd.search.judge import Order
    from qmd.search.meaning.nearness import QuestionVector
    from qmd.store import Reader
    from qmd.store.sql.documents import FullDocument


#: Document id → 0..1, best first.
Blends = Mapping[int, float]
#: Gives the parts of the blend of a document.
ExplainBlend = Callable[[int], Mapping[str, Any]]


def rank(
    reader: Reader,
    request: SearchRequest,
    question: Question,
    retrieved: Retrieved,
    models: SearchModels,
) -> tuple[list[Candidate], Order]:
    """
    Put the documents of all runs in order.

    Returns:
        The first ``request.depth`` candidates, best first, and among them those further ones of
        which the query is a name; and by what they are ordered.
    """
    unembedded_ids: frozenset[int] = frozenset()
    if retrieved.nearest:
        unembedded_ids = unembedded_ids_of(reader, retrieved, retrieved.candidates)
    lacks_vectors = _lacks_vectors(retrieved, unembedded_ids)
    if lacks_vectors:
        retrieved.by_meaning = [replace(run, type="expansion") for run in retrieved.by_meaning]
    fused = reciprocal_rank_fusion([*retrieved.by_words, *retrieved.by_meaning])

    def rerank(document_ids: Iterable[int]) -> dict[int, float]:
        """Document id → the reranker's score, of the first ones; empty without a reranker."""
        best_ids = list(islice(document_ids, request.candidates))
        if models.reranker is None or not best_ids:
            return {}
        passages = passages_of(reader, retrieved, best_ids)
        answer, problem = ask_model(models.reranker, question.prompt, passages, models.timeout_s)
        retrieved.problems += filter(None, [problem])
        pairs = zip(best_ids, answer, strict=False)
        return {document_id: score for document_id, score in pairs if score is not None}

    order: Order = "ranks"
    if request.rerank and retrieved.nearest and not lacks_vectors:
        order = "evidence"
        blends, explain = _by_evidence(
            reader, request, question, retrieved, models, fused, unembedded_ids, rerank
        )
    else:
        blends, explain = _by_ranks(retrieved, fused, unembedded_ids, rerank(fused))
    candidates = []
    for place, (document_id, blend) in enumerate(blends.items()):
        if request.depth is None or place < request.depth or document_id in question.named:
            candidate = retrieved.candidates[document_id]
            candidate.blend = blend
            if request.explain:
                candidate.explanation = explain(document_id)
            candidates.append(candidate)
    return candidates, order


def _lacks_vectors(retrieved: Retrieved, unembedded_ids: Collection[int]) -> bool:
    """Whether the vectors leave out many of the best by words, as in the first hour of an index."""
    best = islice(retrieved.by_words[0].scores, LOOKED_AT) if retrieved.by_words else ()
    return sum(document_id in unembedded_ids for document_id in best) > MOST_LACKING


def _by_evidence(
    reader: Reader,
    request: SearchRequest,
    question: Question,
    retrieved: Retrieved,
    models: SearchModels,
    fused: Mapping[int, float],
    unembedded_ids: Collection[int],
    rerank: Callable[[Iterable[int]], dict[int, float]],
) -> tuple[Blends, ExplainBlend]:
    """The order by evidence; documents with equal evidence stay in the fused order."""
    measures, problem = measure_documents(
        reader, retrieved, list(fused), unembedded_ids, models, request.without
    )
    retrieved.problems += filter(None, [problem])
    totals = dict(rank_by_evidence(fused, measures))
    scores = rerank(totals)
    if scores:
        asked_ids = list(totals)[: request.candidates]
        measures.append(measure_by_model(question.prompt, scores, measures, asked_ids))
        totals = dict(rank_by_evidence(totals, measures))
    best = next(iter(totals.values()))

    def explain(document_id: int) -> Mapping[str, Any]:
        parts = [measure.explain(document_id) for measure in measures]
        explained = {"parts": parts, "sum": totals[document_id], "best": best}
        return explained | {"rerank": scores.get(document_id)} if scores else explained

    blends = {each: total / best if best else 1.0 for each, total in totals.items()}
    return blends, explain


def _by_ranks(
    retrieved: Retrieved,
    fused: Mapping[int, float],
    unembedded_ids: Collection[int],
    scores: Mapping[int, float],
) -> tuple[Blends, ExplainBlend]:
    """
    The fused order, into which the scores of a reranker are mixed if there are any.

    How near a document is to an expansion does not count.
    """
    retrieved.set_relative_nearness(retrieved.nearest, unembedded_ids)
    places = {document_id: place for place, document_id in enumerate(fused)}

    def explain(document_id: int) -> Mapping[str, Any]:
        weights = blend_weights(places[document_id]) if scores else (1.0, 0.0)
        return _explain_ranks(retrieved, document_id, fused[document_id]) | {
            "rerank": scores.get(document_id),
            "weights": dict(zip(("rrf", "rerank"), weights, strict=True)),
        }

    return blend_scores(fused, scores), explain


def _explain_ranks(retrieved: Retrieved, document_id: int, rrf: float) -> dict[str, Any]:
    """
    The parts of a fused score, as `--explain` shows them.

    rrf = sum of the contributions + bonus; blend = weights.rrf * rrf + weights.rerank * rerank,
    where a rerank of None counts as 0.
    """
    runs = [
        (run, run.ranks[document_id])
        for run in (*retrieved.by_words, *retrieved.by_meaning)
        if document_id in run.ranks
    ]
    first = bonus(min(rank for _, rank in runs))
    # 1 / the greatest possible sum, so that the parts add up to rrf.
    scale = rrf / (fsum(share(run, rank) for run, rank in runs) + first)
    return {
        "lists": [
            {
                "source": run.source,
                "query": run.text,
                "type": run.type,
                "rank": rank,
                "score": round(run.scores[document_id], 6),
                "weight": run.weight,
                "contribution": share(run, rank) * scale,
            }
            for run, rank in runs
        ],
        "bonus": first * scale,
        "rrf": rrf,
    }


# --- vsearch ------------------------------------------------------------------------------


def rank_by_nearness(
    reader: Reader,
    request: SearchRequest,
    embedded: QuestionVector,
    hits: Iterable[Candidate],
    expansions: Sequence[tuple[QuestionVector, Sequence[Candidate]]],
) -> list[Candidate]:
    """
    Merge the hits of a question and those of its expansions by nearness.

    A document's score for the question is `nearness_score`. Its score for an expansion is the mean
    of its scores for the question (weight 2) and for the expansion (weight 1). The best of these
    counts.

    Returns:
        Best first; ties by nearness, then by document id.
    """
    spec = embedded.spec
    candidates = {hit.document_id: hit for hit in hits}
    for hit in candidates.values():
        hit.blend = meaning.nearness.nearness_score(hit.nearness, spec)
    nearness = {hit.document_id: hit.nearness for hit in candidates.values()}
    raised: dict[int, tuple[str, float]] = {}
    total = ORIGINAL_WEIGHT + EXPANSION_WEIGHT
    for expansion, others in expansions:
        by_question = meaning.nearness.best_chunks_of(
            reader, embedded, [hit.document_id for hit in others]
        )
        for hit in others:
            document_id = hit.document_id
            candidate = by_question.get(document_id, hit)
            plain, score = (
                meaning.nearness.nearness_score(each.nearness, spec) for each in (candidate, hit)
            )
            mean = (ORIGINAL_WEIGHT * plain + EXPANSION_WEIGHT * score) / total
            candidate.blend = max(plain, mean)
            other = candidates.get(document_id)
            if other is None or candidate.blend > max(plain, other.blend):
                candidates[document_id] = candidate
                nearness[document_id] = candidate.nearness
                if mean > plain:
                    candidate.chunk_id, nearness[document_id] = hit.chunk_id, hit.nearness
                    raised[document_id] = expansion.text, score
    for document_id, candidate in candidates.items():
        # Near to the question: an expander makes texts that are near to some document anyway.
        nearness_of = meaning.nearness.relative_nearness
        candidate.relative_nearness = nearness_of(candidate.nearness, spec)
        if request.explain:
            candidate.explanation = _explain_nearness(candidate, spec, raised.get(document_id))
    return sorted(
        candidates.values(),
        key=lambda each: (-each.blend, -nearness[each.document_id], each.document_id),
    )


def _explain_nearness(
    candidate: Candidate, spec: ModelSpec, expansion: tuple[str, float] | None
) -> dict[str, Any]:
    """
    The parts of a blend by meaning, as `--explain` shows them.

    nearness = cosine - shared; own = (nearness - low) / (high - low), within 0 and 1;
    blend = own, or (2 * own + expansion) / 3 if an expansion raised it.
    """
    explained: dict[str, Any] = {
        "model": spec.name,
        "cosine": candidate.cosine,
        "shared": candidate.cosine - candidate.nearness,
        "nearness": candidate.nearness,
        "low": spec.cosine_low,
        "high": spec.cosine_high,
        "own": meaning.nearness.nearness_score(candidate.nearness, spec),
    }
    if expansion is not None:
        text, score = expansion
        explained["expansion"] = {"query": text, "score": score}
    return explained


#: The rank offset of reciprocal rank fusion, k; 60 is the value of its authors.
RRF_K = 60
#: A passage has at most this many characters. A model may read fewer.
PASSAGE_CHARS = 4000
#: If more than so many of the best by words have no vectors yet, the order is that of the ranks, in
#: which those by meaning count as those of an expansion do.
LOOKED_AT, MOST_LACKING = 10, 2
#: A passage that is chosen by words begins this many characters before its best line.
BEFORE = 200


def reciprocal_rank_fusion(runs: Sequence[Run]) -> dict[int, float]:
    """
    Merge ranked runs by summed reciprocal rank, with a bonus for the top of any run.

    Args:
        runs: Each best first.

    Returns:
        Document id → (sum of its `share` of each run + its `bonus`) / (the greatest possible sum),
        0..1. Best first; ties broken by document id, so the order is stable. Independent of the
        order of the runs.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009. The weights, and the bonus for a document's
    best rank (0.05 for rank 1, 0.02 for ranks 2 and 3), are those of tobi/qmd.
    """
    # fsum is exact, so that no score depends on the order of the runs.
    best_possible = fsum(share(run, 1) for run in runs) + 0.05
    shares: dict[int, list[float]] = {}
    best_ranks: dict[int, int] = {}
    for run in runs:
        for document_id, rank in run.ranks.items():
            shares.setdefault(document_id, []).append(share(run, rank))
            best_ranks[document_id] = min(rank, best_ranks.get(document_id, rank))
    fused = {
        document_id: (fsum(parts) + bonus(best_ranks[document_id])) / best_possible
        for document_id, parts in shares.items()
    }
    return _sorted(fused)


def share(run: Run, rank: int) -> float:
    """What a rank in a run adds to a fused score."""
    return run.weight / (RRF_K + rank)


def bonus(best_rank: int) -> float:
    """What a document's best rank in any run adds to its fused score."""
    if best_rank == 1:
        return 0.05
    return 0.02 if best_rank <= 3 else 0.0


def blend_weights(rank: int) -> tuple[float, float]:
    """
    The weights of the fused and of the reranked score, which add up to 1.

    Args:
        rank: The document's rank after fusion, from 0.

    Source: tobi/qmd. The better the fused rank, the less a reranker may change it.
    """
    if rank < 3:
        return 0.75, 0.25
    if rank < 10:
        return 0.60, 0.40
    return 0.40, 0.60


def blend_scores(fused: Mapping[int, float], reranked: Mapping[int, float]) -> dict[int, float]:
    """
    Mix fused scores and a model's scores by rank, and sort by the result.

    Args:
        fused: Document id → fused score, best first.
        reranked: Document id → score, 0..1. If it is empty, the fused scores stay as they are.
            A document that is missing counts as 0.

    Returns:
        Document id → `blend_weights` · (fused, reranked), 0..1; best first, ties by document id.
    """
    if not reranked:
        return dict(fused)
    mixed = {}
    for rank, (document_id, rrf) in enumerate(fused.items()):
        by_rank, by_model = blend_weights(rank)
        mixed[document_id] = by_rank * rrf + by_model * reranked.get(document_id, 0.0)
    return _sorted(mixed)


def _sorted(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def ask_model(
    reranker: Reranker, prompt: str, passages: Sequence[str], timeout_s: float
) -> tuple[Sequence[float | None], str | None]:
    """
    A score (0..1) for each passage, None for those that the model did not reach in time.

    The second value is a sentence that says what is missing. If the model failed, there are no
    scores.

    Args:
        prompt: The query as the model reads it.
    """
    try:
        scores = reranker.rerank(prompt, passages, timeout_s=timeout_s)
    except InferenceError as error:
        return [], f"Not reranked: {error}"
    missing = sum(score is None for score in scores)
    if not missing:
        return scores, None
    return scores, (
        f"Reranked {len(passages) - missing} of {len(passages)} candidates: a query waits"
        f" {timeout_s:g} s for models (model_budget)."
    )


def passages_of(reader: Reader, retrieved: Retrieved, document_ids: Sequence[int]) -> list[str]:
    """
    For each document its title, and the part of it that is most likely to answer the query.

    That part is the chunk nearest to the question; in a document without vectors it begins shortly
    before the line that holds most of the query's words.
    """
    chunks = _nearest_chunks(reader, retrieved, document_ids)
    spans = reader.vectors.chunk_spans(list(chunks.values())) if chunks else {}
    query_needles = needles(retrieved.words.query)
    passages = []
    for page in reader.documents.full(document_ids):
        chunk_id = chunks.get(page.info.id)
        if chunk_id is not None:
            start, end, _ = spans[chunk_id]
        else:
            start, end = _start_by_words(page, query_needles), len(page.text)
        passages.append(f"{page.info.title}\n{page.text[start:end]}"[:PASSAGE_CHARS])
    return passages


def _nearest_chunks(
    reader: Reader, retrieved: Retrieved, document_ids: Sequence[int]
) -> Mapping[int, int]:
    """Document id → the id of its chunk nearest to the question, for documents with vectors."""
    candidates = retrieved.candidates
    chunks = {
        document_id: chunk_id
        for document_id in document_ids
        if document_id in candidates and (chunk_id := candidates[document_id].chunk_id) is not None
    }
    other_ids = [document_id for document_id in document_ids if document_id not in chunks]
    if retrieved.embedded is not None and other_ids:
        best = meaning.nearness.best_chunks_of(reader, retrieved.embedded, other_ids)
        chunks |= {
            document_id: each.chunk_id
            for document_id, each in best.items()
            if each.chunk_id is not None
        }
    return chunks


def _start_by_words(page: FullDocument, query_needles: Mapping[str, float]) -> int:
    """The position at which the passage of a document without vectors begins."""
    if len(page.text) - page.body_start <= PASSAGE_CHARS // 2:
        return page.body_start
    best_line = make_snippet(page.text, page.body_start, query_needles, names=page.names).line
    return max(page.body_start, line_starts(page.text)[best_line - 1] - BEFORE)
