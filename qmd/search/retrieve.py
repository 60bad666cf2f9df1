"""Retrieves for `query`: full text and the vectors search for every text of the question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qmd.engine_text import with_cause
from qmd.errors import InferenceError, VectorIndexMissingError
from qmd.search import meaning
from qmd.search.by_words import retrieve_by_words
from qmd.search.candidates import Candidate, Run
from qmd.search.question import Question, SearchModels, parse_query
from qmd.search.words import QueryWords, weigh_words

if TYPE_CHECKING:
    from qmd.search.meaning.nearness import QuestionVector
    from qmd.store import Reader

VECTORS_COMING = "The vectors are being made in the background; the first are not ready yet."


@dataclass(slots=True)
class Retrieved:
    """
    What both retrievers have returned.

    Attributes:
        words: The words of the original query and their weights.
        by_words: One run of full text for each text of ``Question.for_words``.
        by_meaning: One run of the vectors for each text of ``Question.for_meaning``; fewer if
            retrieval by meaning failed.
        embedded: The original query as the embedding model read it; None without a run by meaning.
        candidates: Document id → candidate, for the documents of all runs.
        problems: Sentences that say what could not be done; none if all was.
    """

    words: QueryWords
    by_words: Sequence[Run] = ()
    by_meaning: Sequence[Run] = ()
    embedded: QuestionVector | None = None
    candidates: dict[int, Candidate] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def nearest(self) -> Mapping[int, float]:
        """Document id → nearness, of those that the vectors found for the original query."""
        return self.by_meaning[0].values if self.by_meaning else {}

    @property
    def nearest_chunks(self) -> Mapping[int, float]:
        """Document id → nearness, of the candidates whose nearest chunk is known."""
        return {
            document_id: candidate.nearness
            for document_id, candidate in self.candidates.items()
            if candidate.chunk_id is not None
        }

    def set_relative_nearness(
        self, nearness: Mapping[int, float], unembedded_ids: Collection[int]
    ) -> None:
        """
        Say how near each candidate is to the question, on the scale of the model.

        Args:
            nearness: Of the documents whose vectors were looked at. Any other is taken to be as
                near as the last one of the original query's run.
            unembedded_ids: Documents without vectors, of which nothing is said.
        """
        if self.embedded is None or not self.nearest:
            return
        last = list(self.nearest.values())[-1]
        for document_id, candidate in self.candidates.items():
            if document_id not in unembedded_ids:
                candidate.relative_nearness = meaning.nearness.relative_nearness(
                    nearness.get(document_id, last), self.embedded.spec
                )


def retrieve(reader: Reader, question: Question, models: SearchModels) -> Retrieved:
    """
    Search full text and the vectors for every text of the question.

    If the vectors cannot be searched, full text answers alone; it then searches for the texts that
    were meant for the vectors too, if the question has no other. Raises nothing for that:
    `Retrieved.problems` says why.
    """
    retrieved = Retrieved(weigh_words(reader, question.query))
    _search_words(reader, question, question.for_words, retrieved)
    error = None
    if question.text and question.for_meaning:
        error = _search_vectors(reader, question, models, retrieved)
    if error is not None:
        if not (question.for_words or retrieved.nearest):
            _search_words(reader, question, question.for_meaning, retrieved)
        effect = "Expanded in part" if retrieved.nearest else "Answered from full text alone"
        retrieved.problems.append(with_cause(effect, _cause(error, models)))
    return retrieved


def _cause(error: InferenceError, models: SearchModels) -> str:
    """Why the vectors could not be searched; 'qmd embed' is advised only where it would help."""
    is_missing = isinstance(error, VectorIndexMissingError)
    return (models.without_vectors() if is_missing else None) or error.message


def _search_words(
    reader: Reader, question: Question, texts: Sequence[str], retrieved: Retrieved
) -> None:
    runs = []
    for index, text in enumerate(texts):
        query = parse_query(reader, text)
        is_same = query == retrieved.words.query
        words = retrieved.words if is_same else weigh_words(reader, query)
        named_ids = () if index else question.named
        candidates = retrieve_by_words(reader, words, question.selection, question.most, named_ids)
        if index and question.exclusions is not None:  # an expansion has no exclusions itself
            excluded = question.exclusions
            candidates = [each for each in candidates if excluded.admit(reader, each.document_id)]
        runs.append(_run_by_words(text, candidates, index))
        for candidate in candidates:
            # How an expansion matches says nothing about the query.
            other = Candidate(candidate.document_id) if index else candidate
            retrieved.candidates.setdefault(candidate.document_id, other)
    retrieved.by_words = runs


def _run_by_words(text: str, candidates: Sequence[Candidate], index: int) -> Run:
    """
    A run of full text.

    An exact candidate counts with at least the bm25 of the relaxed ones after it in the run.
    """
    values: dict[int, float] = {}
    highest = 0.0
    for candidate in reversed(candidates):
        values[candidate.document_id] = highest = max(highest, candidate.bm25)
    scores = {candidate.document_id: candidate.blend for candidate in candidates}
    return Run("fts", text, "expansion" if index else "original", scores, values)


def _search_vectors(
    reader: Reader, question: Question, models: SearchModels, retrieved: Retrieved
) -> InferenceError | None:
    answers, error = meaning.retrieval.retrieve_texts_by_meaning(
        reader, question.for_meaning, question, models, with_tokens=True
    )
    runs = []
    by_query = retrieved.by_words[0].scores if retrieved.by_words else {}
    for index, (embedded, nearest) in enumerate(answers):
        if index == 0:
            retrieved.embedded = embedded
        values = {each.document_id: each.nearness for each in nearest}
        runs.append(Run("vec", embedded.text, "expansion" if index else "original", values, values))
        for each in nearest:
            candidate = retrieved.candidates.setdefault(each.document_id, each)
            if candidate.chunk_id is None:
                candidate.take_chunk(each)
            if each.document_id not in by_query:
                candidate.match = "semantic"
    retrieved.by_meaning = runs
    return error
