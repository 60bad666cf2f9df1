"""Retrieval by words and by meaning, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.search.fuse import EXPANSION_WEIGHT, ORIGINAL_WEIGHT, Run
from qmd.search.meaning.nearness import SemanticHit
from qmd.search.meaning.retrieval import MeaningRun, MeaningRuns, retrieve_texts_by_meaning
from qmd.search.models import SearchModels
from qmd.search.parse import Scope
from qmd.search.plan import Plan
from qmd.search.query.language import parse
from qmd.search.words.retrieval import LexicalHit, retrieve_by_words
from qmd.search.words.weights import QueryWords, weigh_words
from qmd.values import Source

if TYPE_CHECKING:
    from qmd.store import Reader


@dataclass(frozen=True, slots=True)
class WordRun:
    """The documents that full text ranks for one text, best first."""

    text: str
    hits: Sequence[LexicalHit]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """
    The runs of both retrievers; the first run of each is that of the original query.

    ``problem`` is a sentence, where retrieval by meaning failed.
    """

    words: QueryWords
    by_words: tuple[WordRun, ...]
    by_meaning: tuple[MeaningRun, ...]
    problem: str | None = None

    @property
    def runs(self) -> list[Run]:
        """All runs, for fusion."""
        lexical = [
            _run("fts", each.text, number, [(hit.document, hit.score) for hit in each.hits])
            for number, each in enumerate(self.by_words)
        ]
        semantic = [
            _run("vec", each.text, number, [(hit.document, hit.nearness) for hit in each.hits])
            for number, each in enumerate(self.by_meaning)
        ]
        return lexical + semantic

    @property
    def lexical_hits(self) -> dict[int, LexicalHit]:
        """Document id → its hit by the words of the original query."""
        first = self.by_words[0].hits if self.by_words else ()
        return {hit.document: hit for hit in first}

    @property
    def semantic_hits(self) -> dict[int, SemanticHit]:
        """Document id → its hit by meaning, from the first run that has it."""
        hits: dict[int, SemanticHit] = {}
        for run in self.by_meaning:
            for hit in run.hits:
                hits.setdefault(hit.document, hit)
        return hits


def retrieve(reader: Reader, plan: Plan, models: SearchModels) -> Retrieved:
    """
    Ask full text and vectors for every text of the plan.

    Full text alone answers where the vectors cannot, also what was meant for them only.
    """
    words = weigh_words(reader, plan.query)
    by_words = _retrieve_texts_by_words(reader, plan.for_words, words, plan.scope)
    meaning = MeaningRuns()
    if plan.text and plan.for_meaning:
        meaning = retrieve_texts_by_meaning(reader, plan.for_meaning, plan.scope, models)
    if meaning.problem is None:
        return Retrieved(words, by_words, meaning.runs)
    has_nearest = bool(meaning.runs and meaning.runs[0].hits)
    effect = "Expanded in part" if has_nearest else "Answered from full text alone"
    if not plan.for_words and not has_nearest:
        by_words = _retrieve_texts_by_words(reader, plan.for_meaning, words, plan.scope)
    return Retrieved(words, by_words, meaning.runs, f"{effect}: {meaning.problem}")


def _retrieve_texts_by_words(
    reader: Reader, texts: Sequence[str], words: QueryWords, scope: Scope
) -> tuple[WordRun, ...]:
    runs = []
    for number, text in enumerate(texts):
        query = parse(text)
        query_words = words if query == words.query else weigh_words(reader, query)
        hits = retrieve_by_words(reader, query_words, scope.selection, scope.depth)
        if number and scope.exclusions is not None:  # an expansion knows no exclusions
            hits = [hit for hit in hits if scope.exclusions.admit(reader, hit.document)]
        runs.append(WordRun(text, hits))
    return tuple(runs)


def _run(source: Source, text: str, number: int, hits: Sequence[tuple[int, float]]) -> Run:
    if number == 0:
        return Run(source, text, "original", ORIGINAL_WEIGHT, hits)
    return Run(source, text, "expansion", EXPANSION_WEIGHT, hits)
