"""Search by meaning (`vsearch`), and by words and meaning together (`query`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError
from qmd.search import fuse as fusion
from qmd.search import rerank
from qmd.search.meaning import retrieval as semantic
from qmd.search.pipeline import Found, read, reply, search
from qmd.search.query import language, lines
from qmd.search.words import retrieval as lexical
from qmd.store.models import StoredModel
from qmd.values import ModelSpec, SearchReply, SearchRequest, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import Embedder, Expander, Expansion, Reranker
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.store import Reader, Selection

#: Each list that `query` fuses is at least this deep.
DEPTH = 100
#: Most expansions of one query.
EXPANSIONS = 5

Wanted = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Models:
    """
    What may take part beside full text. ``embedder`` opens the model on the first need;
    without a ``reranker`` the embedded one reranks, if ``rerank``.

    Raises (embedder): ModelMissingError.
    """

    embedder: Callable[[], Embedder] | None = None
    expander: Expander | None = None
    reranker: Reranker | None = None
    timeout_s: float = 5.0
    cache: VectorCache | None = None
    rerank: bool = True


def vsearch(
    reader: Reader, request: SearchRequest, models: Models, *, intent: str | None = None
) -> SearchReply:
    """
    Vectors. With an expander, a document's score is the best of the question's and of the
    means of the question's (weight 2) and an expansion's (1).

    A query that only narrows has no meaning to compare: it lists what `search` lists.

    Raises:
        VectorIndexMissingError, VectorsUnavailableError, ModelMissingError, ModelMismatchError.
    """
    request.check()
    query, selection = read(reader, request)
    semantic.require_index(reader, None)
    if not query.text:
        return search(reader, request)
    spec, vector = _embed(query.text, models)
    model = semantic.require_index(reader, spec)
    question = semantic.question(reader, model, vector)
    depth = request.depth
    wanted = lexical.wanted(reader, query)
    hits = _nearest(reader, model, question, selection, depth, models, wanted)
    expansions, degraded = _expand(models, query.text, intent)
    found = {}
    for hit in hits:
        score = semantic.score(hit.nearness, spec)
        found[hit.document] = (score, hit, _explain_near(hit, spec, score))
    total = fusion.ORIGINAL_WEIGHT + fusion.EXPANSION_WEIGHT
    try:
        for expansion in expansions:
            if expansion.kind == "lex":
                continue
            _, vector = _embed(expansion.text, models)
            other = semantic.question(reader, model, vector)
            near = _nearest(reader, model, other, selection, depth, models, wanted)
            plain = semantic.of(reader, model, question, [hit.document for hit in near])
            for hit in near:
                first = plain.get(hit.document, hit)
                own, its = (semantic.score(each.nearness, spec) for each in (first, hit))
                score = (fusion.ORIGINAL_WEIGHT * own + fusion.EXPANSION_WEIGHT * its) / total
                known = found.get(hit.document)
                if score > own and (known is None or score > known[0]):
                    explain = _explain_near(first, spec, own)
                    explain["expansion"] = {"query": expansion.text, "score": its}
                    found[hit.document] = (score, hit, {**explain, "score": score})
                elif known is None:
                    found[hit.document] = (own, first, _explain_near(first, spec, own))
    except InferenceError as error:
        degraded = f"Expanded in part: {error}"
    best = sorted(found.values(), key=lambda it: (-it[0], -it[1].nearness, it[1].document))
    made = [
        Found(
            hit.document,
            score,
            "semantic",
            (),
            semantic.level(hit.nearness, spec),
            hit.chunk,
            explain,
        )
        for score, hit, explain in best
    ]
    return replace(reply(reader, request, query, made), degraded=degraded)


def _explain_near(hit: semantic.SemanticHit, spec: ModelSpec, score: float) -> dict[str, Any]:
    """
    The parts of a score: nearness = cosine - shared; own = (nearness - low) / (high - low),
    within 0 and 1; score = own, or (2 * own + expansion) / 3.
    """
    return {
        "model": spec.name,
        "cosine": hit.cosine,
        "shared": hit.cosine - hit.nearness,
        "nearness": hit.nearness,
        "low": spec.cosine_low,
        "high": spec.cosine_high,
        "own": score,
        "score": score,
    }


def query(
    reader: Reader,
    request: SearchRequest,
    models: Models,
    *,
    candidates: int = 30,
    intent: str | None = None,
) -> SearchReply:
    """
    Both, fused by reciprocal rank and reranked; full text alone where vectors are missing,
    saying so. One that only narrows lists what `search` lists.

    The query may be lines for each retriever (see `qmd.search.query.lines`): then the first for
    each counts as the original, the others as expansions, and no expander is asked.
    """
    request.check()
    problems: list[str | None] = []
    asked = lines.read(request.query)
    wanted: Wanted | None = None  # lines speak for their own retriever only
    if asked is None:
        parsed, selection = read(reader, request)
        wanted = lexical.wanted(reader, parsed)
        expansions, problem = _expand(models, parsed.text, intent)
        problems.append(problem)
        for_words = [request.query, *(e.text for e in expansions if e.kind == "lex")]
        questions = [parsed.text, *(e.text for e in expansions if e.kind != "lex")]
    else:
        for_words, questions = list(asked.words), list(asked.meanings)
        parsed, selection = read(reader, replace(request, query=[*for_words, *questions][0]))
        intent = intent or asked.intent
    main = parsed.text or next(iter(questions), "")
    listing = [text for text in for_words if language.parse(text).only_narrows]
    if listing and not main and len(listing) == len(for_words):
        found = search(reader, replace(request, query=listing[0]))
        return replace(found, query=request.query)
    # Beside something to look for, a list by date says nothing.
    for_words = [text for text in for_words if text not in listing]
    depth = None if request.limit is None else max(DEPTH, request.limit)
    weights = lexical.Weights(reader, parsed)
    words, runs = _by_words(reader, for_words, selection, depth, weights)
    if wanted is not None:
        runs[1:] = [_only(run, wanted) for run in runs[1:]]
    meaning = _Meaning()
    if main and questions:
        try:
            _by_meaning(reader, questions, selection, depth, models, meaning, wanted)
        except InferenceError as error:
            took = "Expanded in part" if meaning.near else "Answered from full text alone"
            problems.append(f"{took}: {error}")
            if not (for_words or meaning.near):  # only the vectors were asked
                words, runs = _by_words(reader, questions, selection, depth, weights)
    fused = fusion.reciprocal_rank_fusion([*runs, *meaning.runs])
    reranked: dict[int, rerank.Reranked] = {}
    if models.rerank:
        best = [entry.document for entry in fused[:candidates]]
        text = f"{intent}\n{main}" if intent else main
        reranked, problem = _rerank(reader, models, text, best, words, meaning, weights.total)
        problems.append(problem)
    by_words = {hit.document: hit for hit in words}
    hits = []
    for blended in fusion.blend(fused, {n: entry.score for n, entry in reranked.items()}):
        document = blended.fused.document
        word, near = by_words.get(document), meaning.best.get(document)
        level = meaning.at_most(document) if near is None else near.nearness
        hits.append(
            Found(
                document,
                blended.score,
                word.match if word else "semantic" if near else "relaxed",
                word.words if word else (),
                semantic.level(level, meaning.spec) if level is not None and meaning.spec else None,
                near.chunk if near else None,
                _explain(blended, reranked.get(document)) if request.explain else None,
            )
        )
    return replace(
        reply(reader, request, parsed, hits, weights),
        degraded=" ".join(problem for problem in problems if problem) or None,
    )


def _by_words(
    reader: Reader,
    texts: Sequence[str],
    selection: Selection,
    depth: int | None,
    weights: lexical.Weights,
) -> tuple[list[lexical.LexicalHit], list[fusion.Run]]:
    """The hits for the first text, and a run for each."""
    first: list[lexical.LexicalHit] = []
    runs = []
    for number, text in enumerate(texts):
        question = language.parse(text)
        known = weights if question == weights.query else None
        found = lexical.search(reader, question, selection, depth, known)
        first = first if number else found
        scored = [(hit.document, hit.score) for hit in found]
        runs.append(_run("fts", text, number, scored))
    return first, runs


@dataclass(slots=True)
class _Meaning:
    """
    What the vectors found: a run for each question, each document's best chunk, and for the
    first question what its reranking needs.
    """

    runs: list[fusion.Run] = field(default_factory=list)
    best: dict[int, semantic.SemanticHit] = field(default_factory=dict)
    spec: ModelSpec | None = None
    model: StoredModel | None = None
    question: semantic.Question | None = None
    near: list[semantic.SemanticHit] = field(default_factory=list)
    without: frozenset[int] = frozenset()  # candidates whose vectors are still to be made

    def at_most(self, document: int) -> float | None:
        """How near is, at most, what a full list does not hold; None where that is unknown."""
        if document in self.without or len(self.near) < DEPTH:
            return None
        return self.near[-1].nearness


def _by_meaning(
    reader: Reader,
    questions: Sequence[str],
    selection: Selection,
    depth: int | None,
    models: Models,
    found: _Meaning,
    wanted: Wanted | None,
) -> None:
    """
    Adds to ``found``, so that what was found stays when an expansion cannot be embedded.

    Raises:
        InferenceError.
    """
    semantic.require_index(reader, None)
    for number, text in enumerate(questions):
        found.spec, vector = _embed(text, models)
        model = semantic.require_index(reader, found.spec)
        question = semantic.question(reader, model, vector)
        near = _nearest(reader, model, question, selection, depth, models, wanted)
        scored = [(hit.document, hit.nearness) for hit in near]
        found.runs.append(_run("vec", text, number, scored))
        for hit in near:
            found.best.setdefault(hit.document, hit)
        if number == 0:
            found.model, found.question, found.near = model, question, near


def _nearest(
    reader: Reader,
    model: StoredModel,
    question: semantic.Question,
    selection: Selection,
    limit: int | None,
    models: Models,
    wanted: Wanted | None,
) -> list[semantic.SemanticHit]:
    """As `semantic.search`, of the wanted documents."""
    asked = limit
    while True:
        hits = semantic.search(reader, model, question, selection, asked, models.cache)
        if wanted is None:
            return hits
        kept = [hit for hit in hits if wanted(hit.document)]
        if limit is None or asked is None:
            return kept
        if len(kept) >= limit or len(hits) < asked:
            return kept[:limit]
        asked *= 4


def _only(run: fusion.Run, wanted: Wanted) -> fusion.Run:
    return replace(run, hits=[hit for hit in run.hits if wanted(hit[0])])


def _run(source: Source, text: str, number: int, hits: Sequence[tuple[int, float]]) -> fusion.Run:
    if number == 0:
        return fusion.Run(source, text, "original", fusion.ORIGINAL_WEIGHT, hits)
    return fusion.Run(source, text, "expansion", fusion.EXPANSION_WEIGHT, hits)


def _rerank(
    reader: Reader,
    models: Models,
    text: str,
    candidates: Sequence[int],
    words: Sequence[lexical.LexicalHit],
    meaning: _Meaning,
    total: int,
) -> tuple[dict[int, rerank.Reranked], str | None]:
    """By the model, if there is one; where it fails, as without it."""
    problem = None
    if models.reranker is not None and candidates:
        chunks = {hit.document: hit.chunk for hit in meaning.best.values()}
        reranked, problem = rerank.by_model(
            reader, models.reranker, models.timeout_s, text, candidates, chunks
        )
        if reranked:
            return reranked, None
    if meaning.model is None or meaning.question is None:
        return {}, problem
    whole = semantic.whole(reader, meaning.model, meaning.question, candidates)
    meaning.without = frozenset(candidates) - whole.keys()
    return rerank.embedded(
        candidates,
        {hit.document: hit.bm25 for hit in words},
        {hit.document: hit.nearness for hit in meaning.near},
        whole,
        total,
    ), problem


def _expand(
    models: Models, text: str, intent: str | None
) -> tuple[Sequence[Expansion], str | None]:
    """Other ways to ask; an expander that fails takes nothing away but its own part."""
    if models.expander is None or not text:
        return (), None
    try:
        asked = f"{intent}\n{text}" if intent else text
        return models.expander.expand(asked, limit=EXPANSIONS, timeout_s=models.timeout_s), None
    except InferenceError as error:
        return (), f"Not expanded: {error}"


def _embed(text: str, models: Models) -> tuple[Any, NDArray[np.float32]]:
    if models.embedder is None:
        raise InferenceError("No embedding model is set up.", hint="qmd doctor")
    embedder = models.embedder()
    return embedder.spec, embedder.embed_query(text[: language.MAX_QUESTION])


def _explain(blended: fusion.Blended, reranked: rerank.Reranked | None) -> dict[str, Any]:
    """
    The parts of a score: rrf = all contributions + bonus, scaled to it;
    score = blend.rrf * rrf + blend.rerank * (rerank or 0).
    """
    entry = blended.fused
    share = blended.rrf / (fsum(part.contribution for part in entry.lists) + entry.bonus)
    explained: dict[str, Any] = {
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
        "rrf": blended.rrf,
        "rerank": blended.reranked,
        "blend": {"rrf": blended.by_rank, "rerank": blended.by_model},
        "score": blended.score,
    }
    if reranked is not None and reranked.parts is not None:
        explained["evidence"] = dict(reranked.parts)
    return explained
