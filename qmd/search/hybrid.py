"""Search by meaning (`vsearch`), and by words and meaning together (`query`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import InferenceError
from qmd.model import SearchReply
from qmd.search import fusion, language, lexical, lines, semantic
from qmd.search.pipeline import Found, Request, read, reply
from qmd.sqlite import Connection
from qmd.store import documents, vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import Embedder, Expander, Expansion, Reranker
    from qmd.search.bits import BitIndex

#: Each list that `query` fuses is at least this deep.
DEPTH = 100
#: Most expansions of one query.
EXPANSIONS = 5


@dataclass(frozen=True, slots=True)
class Models:
    """
    What may take part beside full text. ``embedder`` opens the model on the first need.

    Raises (embedder): ModelMissingError.
    """

    embedder: Callable[[], Embedder] | None = None
    expander: Expander | None = None
    reranker: Reranker | None = None
    timeout_s: float = 5.0
    bits: BitIndex | None = None


def vsearch(connection: Connection, request: Request, models: Models) -> SearchReply:
    """
    Vectors.

    Raises:
        VectorIndexMissingError, VectorsUnavailableError, ModelMissingError, ModelMismatchError.
    """
    request.check()
    query, where = read(connection, request)
    semantic.require_index(connection, None)
    if not query.text:
        return reply(connection, request, query, [])
    spec, vector = _embed(query.text, models)
    model = semantic.require_index(connection, spec)
    found = []
    for hit in semantic.search(connection, model, vector, where, request.limit, models.bits):
        score = semantic.score(hit.cosine, spec)
        explain = {"model": spec.name, "cosine": round(hit.cosine, 6)}
        found.append(Found(hit.document, score, "semantic", score, hit.chunk, explain))
    return reply(connection, request, query, found)


def query(
    connection: Connection,
    request: Request,
    models: Models,
    *,
    candidates: int = 30,
    intent: str | None = None,
) -> SearchReply:
    """
    Both, fused by reciprocal rank; full text alone where vectors are missing, saying so.

    The query may be lines for each retriever (see `qmd.search.lines`): then the first for
    each counts as the original, the others as expansions, and no expander is asked.
    """
    request.check()
    asked = lines.read(request.query)
    if asked is None:
        parsed, where = read(connection, request)
        expansions, degraded = _expand(models, parsed.text)
        for_words = [request.query, *(e.text for e in expansions if e.kind == "lex")]
        questions = [parsed.text, *(e.text for e in expansions if e.kind != "lex")]
    else:
        degraded = None
        for_words, questions = list(asked.words), list(asked.meanings)
        parsed, where = read(connection, replace(request, query=[*for_words, *questions][0]))
        intent = intent or asked.intent
    depth = None if request.limit is None else max(DEPTH, request.limit)
    runs = []
    words: list[lexical.LexicalHit] = []
    weights = lexical.Weights(connection, parsed)
    for number, text in enumerate(for_words):
        question = language.parse(text)
        known = weights if question == parsed else None
        found = lexical.search(connection, question, where, depth, known)
        runs.append(_lexical_run(text, found, "expansion" if number else "original"))
        words = words if number else found
    by_meaning: dict[int, semantic.SemanticHit] = {}
    spec = None
    if parsed.text and questions:
        try:
            semantic.require_index(connection, None)
            for number, text in enumerate(questions):
                spec, vector = _embed(text, models)
                model = semantic.require_index(connection, spec)
                near = semantic.search(connection, model, vector, where, depth, models.bits)
                runs.append(_semantic_run(text, near, "expansion" if number else "original"))
                for hit in near:
                    by_meaning.setdefault(hit.document, hit)
        except InferenceError as error:
            degraded = f"Answered from full text alone: {error}"
    fused = fusion.reciprocal_rank_fusion(runs)
    by_words = {hit.document: hit for hit in words}
    reranked: dict[int, float] = {}
    if models.reranker is not None and fused:
        asked_for = f"{intent}\n{parsed.text}" if intent else parsed.text
        reranked, problem = _rerank(connection, models, asked_for, fused[:candidates], by_meaning)
        degraded = degraded or problem
    hits = []
    for blended in fusion.blend(fused, reranked):
        document = blended.fused.document
        word, meaning = by_words.get(document), by_meaning.get(document)
        hits.append(
            Found(
                document,
                blended.score,
                word.match if word else "semantic" if meaning else "relaxed",
                semantic.score(meaning.cosine, spec) if meaning and spec else 0.0,
                meaning.chunk if meaning else None,
                _explain(blended) if request.explain else None,
            )
        )
    return replace(reply(connection, request, parsed, hits, weights), degraded=degraded)


def _expand(models: Models, text: str) -> tuple[Sequence[Expansion], str | None]:
    """Other ways to ask; an expander that fails takes nothing away but its own part."""
    if models.expander is None or not text:
        return (), None
    try:
        return models.expander.expand(text, limit=EXPANSIONS, timeout_s=models.timeout_s), None
    except InferenceError as error:
        return (), f"Not expanded: {error}"


def _lexical_run(
    text: str, hits: Sequence[lexical.LexicalHit], kind: Literal["original", "expansion"]
) -> fusion.Run:
    weight = fusion.ORIGINAL_WEIGHT if kind == "original" else fusion.EXPANSION_WEIGHT
    return fusion.Run("fts", text, kind, weight, [(hit.document, hit.score) for hit in hits])


def _semantic_run(
    text: str, hits: Sequence[semantic.SemanticHit], kind: Literal["original", "expansion"]
) -> fusion.Run:
    weight = fusion.ORIGINAL_WEIGHT if kind == "original" else fusion.EXPANSION_WEIGHT
    return fusion.Run("vec", text, kind, weight, [(hit.document, hit.cosine) for hit in hits])


def _embed(text: str, models: Models) -> tuple[Any, NDArray[np.float32]]:
    if models.embedder is None:
        raise InferenceError("No embedding model is set up.", hint="qmd doctor")
    embedder = models.embedder()
    return embedder.spec, embedder.embed_query(text)


def _rerank(
    connection: Connection,
    models: Models,
    text: str,
    candidates: Sequence[fusion.Fused],
    by_meaning: Mapping[int, semantic.SemanticHit],
) -> tuple[dict[int, float], str | None]:
    """Scores 0..1 by document; a reranker that fails takes nothing away but its own part."""
    assert models.reranker is not None
    passages = []
    for entry in candidates:
        page = documents.page(connection, entry.document)
        meaning = by_meaning.get(entry.document)
        spans = vectors.spans(connection, [meaning.chunk]) if meaning else {}
        start, end, _ = spans[meaning.chunk] if meaning else (page.body_start, None, 0)
        passages.append(f"{page.info.title}\n{page.text[start:end]}"[:4000])
    try:
        scores = models.reranker.rerank(text, passages, timeout_s=models.timeout_s)
    except InferenceError as error:
        return {}, f"Not reranked: {error}"
    if len(scores) != len(passages):
        return {}, f"Not reranked: {len(scores)} scores came for {len(passages)} passages."
    return {
        entry.document: min(1.0, max(0.0, float(score)))
        for entry, score in zip(candidates, scores, strict=True)
    }, None


def _explain(blended: fusion.Blended) -> dict[str, Any]:
    """
    The parts of a score: rrf = all contributions + bonus, as shares of the best possible;
    score = blend.rrf * rrf + blend.rerank * rerank.
    """
    entry = blended.fused
    share = entry.rrf / (sum(part.contribution for part in entry.lists) + entry.bonus)
    return {
        "lists": [
            {
                "source": part.source,
                "query": part.query,
                "type": part.type,
                "rank": part.rank,
                "score": round(part.score, 6),
                "weight": part.weight,
                "contribution": part.contribution * share,
            }
            for part in entry.lists
        ],
        "bonus": entry.bonus * share,
        "rrf": entry.rrf,
        "rerank": blended.reranked,
        "blend": {"rrf": blended.by_rank, "rerank": blended.by_model},
        "score": blended.score,
    }
