"""The second step of `query`: full text and the vectors search for every text of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qmd.search.fuse import EXPANSION_WEIGHT, ORIGINAL_WEIGHT, Run
from qmd.search.meaning.nearness import SemanticHit
from qmd.search.meaning.retrieval import MeaningRun, MeaningRuns, retrieve_texts_by_meaning
from qmd.search.models import SearchModels
from qmd.search.parse import parse_query
from qmd.search.plan import Plan
from qmd.search.words.retrieval import LexicalHit, retrieve_by_words
from qmd.search.words.weights import QueryWords, weigh_words
from qmd.values import Source

if TYPE_CHECKING:
    from qmd.store import Reader


@dataclass(frozen=True, slots=True)
class WordRun:
    """The hits of full text for one text, best first."""

    text: str
    hits: Sequence[LexicalHit]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """
    The runs of both retrievers. The first run of each is for the original query.

    Attributes:
        words: The words of the original query and their weights.
        by_words: One run of full text for each text of ``Plan.for_words``.
        by_meaning: One run of the vectors for each text of ``Plan.for_meaning``; fewer if
            retrieval by meaning failed.
        problem: A sentence that says how retrieval by meaning failed; None if it did not.
    """

    words: QueryWords
    by_words: tuple[WordRun, ...]
    by_meaning: tuple[MeaningRun, ...]
    problem: str | None = None

    @property
    def runs(self) -> list[Run]:
        """All runs, in the form that fusion takes."""
        lexical = [
            _run("fts", run.text, index, [(hit.document_id, hit.score) for hit in run.hits])
            for index, run in enumerate(self.by_words)
        ]
        semantic = [
            _run("vec", run.text, index, [(hit.document_id, hit.nearness) for hit in run.hits])
            for index, run in enumerate(self.by_meaning)
        ]
        return lexical + semantic

    @property
    def has_nearest(self) -> bool:
        """Whether the vectors have answered the original query."""
        return bool(self.by_meaning and self.by_meaning[0].hits)

    @property
    def lexical_hits(self) -> dict[int, LexicalHit]:
        """Document id → its hit in the first run of full text."""
        first = self.by_words[0].hits if self.by_words else ()
        return {hit.document_id: hit for hit in first}

    @property
    def semantic_hits(self) -> dict[int, SemanticHit]:
        """Document id → its hit in the first run of the vectors that has the document."""
        hits: dict[int, SemanticHit] = {}
        for run in self.by_meaning:
            for hit in run.hits:
                hits.setdefault(hit.document_id, hit)
        return hits


def retrieve(reader: Reader, plan: Plan, models: SearchModels) -> Retrieved:
    """
    Search full text and the vectors for every text of the plan.

    If the vectors cannot be searched, full text answers alone; it then searches for the texts that
    were meant for the vectors too, if the plan has no other. Raises nothing for that:
    `Retrieved.problem` says why.
    """
    words = weigh_words(reader, plan.query)
    by_words = _retrieve_texts_by_words(reader, plan.for_words, words, plan)
    meaning = MeaningRuns()
    if plan.text and plan.for_meaning:
        meaning = retrieve_texts_by_meaning(
            reader, plan.for_meaning, plan.scope, models, with_tokens=True
        )
    retrieved = Retrieved(words, by_words, meaning.runs)
    if meaning.problem is None:
        return retrieved
    effect = "Expanded in part" if retrieved.has_nearest else "Answered from full text alone"
    if not plan.for_words and not retrieved.has_nearest:
        by_words = _retrieve_texts_by_words(reader, plan.for_meaning, words, plan)
    return replace(retrieved, by_words=by_words, problem=f"{effect}: {meaning.problem}")


def _retrieve_texts_by_words(
    reader: Reader, texts: Sequence[str], words: QueryWords, plan: Plan
) -> tuple[WordRun, ...]:
    runs, scope = [], plan.scope
    for index, text in enumerate(texts):
        query = parse_query(reader, text)
        query_words = words if query == words.query else weigh_words(reader, query)
        named_ids = () if index else plan.named
        hits = retrieve_by_words(reader, query_words, scope.selection, scope.depth, named_ids)
        if index > 0 and scope.exclusions is not None:  # an expansion has no exclusions itself
            hits = [hit for hit in hits if scope.exclusions.admit(reader, hit.document_id)]
        runs.append(WordRun(text, hits))
    return tuple(runs)


def _run(source: Source, text: str, index: int, hits: Sequence[tuple[int, float]]) -> Run:
    if index == 0:
        return Run(source, text, "original", ORIGINAL_WEIGHT, hits)
    return Run(source, text, "expansion", EXPANSION_WEIGHT, hits)
