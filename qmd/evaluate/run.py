"""Runs each system on each question, measures the rankings, and compares two systems."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, fsum, log2
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_args

from qmd import libraries
from qmd.errors import InferenceError, InputError
from qmd.evaluate.fixtures import DocumentNames, JudgedQuestion, Judgments
from qmd.values import Filters, Progress, SearchCommand, SearchRequest
from qmd.values.facts import Name
from qmd.values.search import EvidencePart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.kb import KnowledgeBase
    from qmd.values import ProgressCallback, SearchReply


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """
    The answer of a system to a question.

    ``rank`` is the rank of the first relevant document (None: not among the first 100), ``best``
    the first hit, and ``relevance`` the relevance of this hit. ``ms``: to two places.
    """

    question: Annotated[str, Name("id")]
    rank: int | None
    best: str | None
    relevance: float
    metrics: Mapping[str, float]
    ms: float


@dataclass(frozen=True, slots=True)
class Relevance:
    """The mean relevance of the best hits, over the questions that have an answer or have none."""

    answered: float | None
    absent: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """
    The figures of one system.

    Attributes:
        means: Metric → mean over the questions that have an answer.
        differences: Metric → difference from the baseline; empty for the baseline itself.
        notes: Why some answers are degraded.
        answers: The answers in the order of the questions.
    """

    means: Annotated[Mapping[str, float], Name("metrics")]
    differences: Mapping[str, Difference]
    relevance: Relevance
    median_ms: float
    notes: tuple[str, ...]
    answers: tuple[SystemAnswer, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """``left_out``: system → why it could not run. ``unknown``: documents not in the database."""

    name: Annotated[str, Name("fixture")]
    questions: int
    answerable: int
    documents: int
    baseline: str
    systems: Mapping[str, Measured]
    left_out: Mapping[str, str]
    unknown: tuple[str, ...]


def run(
    kb: KnowledgeBase,
    judgments: Judgments,
    *,
    systems: Sequence[str] | None = None,
    baseline: str = "query",
    collections: Sequence[str] = (),
    ids: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
) -> BenchReport:
    """
    Measure ``systems`` on ``judgments``.

    Args:
        systems: Names of `SYSTEMS`; None for those that make sense here (`systems_for`). The first
            that can answer takes the place of a missing baseline.
        collections: The collections to search; empty for that of the judgments, or all.
        ids: Judged id → ``collection/path``, if the judgments brought the documents.

    Raises:
        InputError: No judged document is in the database.
        CollectionNotFoundError: A collection does not exist.
    """
    if not collections and judgments.collection is not None:
        collections = (judgments.collection,)
    filters = Filters(collections=tuple(collections))
    files = _files(kb, collections)
    grades, unknown = _resolved(judgments, files, ids)
    answerable = sum(map(bool, grades.values()))
    if answerable and len(unknown) == sum(map(len, grades.values())):
        raise _wrong_database(judgments, unknown)
    if systems is None:
        systems = systems_for(kb)
    runs: dict[str, _SystemRun] = {}
    left_out: dict[str, str] = {}
    for position, system in enumerate(systems):
        questions = _with_progress(judgments, system, position, len(systems), progress)
        try:
            runs[system] = _run_system(kb, system, questions, grades, filters)
        except InferenceError as error:
            left_out[system] = str(error)
    if runs and baseline not in runs:
        baseline = next(iter(runs))
    resampling = Resampling(answerable) if answerable else None
    return BenchReport(
        judgments.name,
        len(judgments.questions),
        answerable,
        len(files),
        baseline,
        {name: _measured(run, runs[baseline], resampling) for name, run in runs.items()},
        left_out,
        tuple(unknown),
    )


def _files(kb: KnowledgeBase, collections: Sequence[str]) -> list[str]:
    """The documents of these collections, or all, as ``collection/path``."""
    return [document.file for name in collections or ("",) for document in kb.documents(name)]


def _wrong_database(judgments: Judgments, unknown: Sequence[str]) -> InputError:
    return InputError(
        f"None of the documents that {judgments.name} names is in the database",
        hint=f"It names {unknown[0]}, for example; 'qmd ls' lists what there is.",
    )


@dataclass(frozen=True, slots=True)
class _SystemRun:
    """The answers of one system in the order of the questions, and why some are degraded."""

    answers: tuple[SystemAnswer, ...]
    notes: tuple[str, ...]

    @property
    def answerable(self) -> list[SystemAnswer]:
        """The answers to questions that have a relevant document; only these have metrics."""
        return [answer for answer in self.answers if answer.metrics]


def _resolved(
    judgments: Judgments, files: Sequence[str], ids: Mapping[str, str] | None
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Question id → document → grade, and the judged documents that the database lacks."""
    grades: dict[str, dict[str, int]] = {}
    unknown: dict[str, None] = {}
    names = DocumentNames(files)
    for question in judgments.questions:
        if ids is None:
            grades[question.id], missing = names.resolve(question.relevant)
        else:
            grades[question.id] = {
                ids.get(judged_id, judged_id): grade
                for judged_id, grade in question.relevant.items()
            }
            missing = [name for name in question.relevant if name not in ids]
        unknown.update(dict.fromkeys(missing))
    return grades, list(unknown)


def _with_progress(
    judgments: Judgments,
    system: str,
    position: int,
    systems: int,
    progress: ProgressCallback | None,
) -> Iterator[JudgedQuestion]:
    """Yield the questions, and report progress for system ``position`` (from 0) of ``systems``."""
    total = len(judgments.questions)
    for index, question in enumerate(judgments.questions):
        if progress is not None:
            progress(Progress("bench", position * total + index, systems * total, system))
        yield question


def _run_system(
    kb: KnowledgeBase,
    system: str,
    questions: Iterable[JudgedQuestion],
    grades: Mapping[str, Mapping[str, int]],
    filters: Filters,
) -> _SystemRun:
    """
    The answers of one system to all questions.

    Raises:
        InferenceError: The system needs a model that is missing.
    """
    answers: list[SystemAnswer] = []
    notes: dict[str, None] = {}
    for question in questions:
        request = replace(SYSTEMS[system].request, query=question.text, filters=filters)
        start_s = perf_counter()
        reply = kb.run_search(SYSTEMS[system].command, request)
        ms = round((perf_counter() - start_s) * 1000, 2)
        answers.append(_answer(question.id, reply, grades[question.id], ms))
        if reply.degraded is not None:
            notes[reply.degraded] = None
    return _SystemRun(tuple(answers), tuple(notes))


def _answer(
    question_id: str, reply: SearchReply, grades: Mapping[str, int], ms: float
) -> SystemAnswer:
    ranking = [hit.file for hit in reply.hits]
    ranks = (rank for rank, file in enumerate(ranking, 1) if grades.get(file, 0) > 0)
    return SystemAnswer(
        question_id,
        next(ranks, None),
        ranking[0] if ranking else None,
        reply.hits[0].relevance if reply.hits else 0.0,
        {name: metric(ranking, grades) for name, metric in METRICS.items()} if grades else {},
        ms,
    )


def _measured(run: _SystemRun, baseline: _SystemRun, resampling: Resampling | None) -> Measured:
    """The figures of one run. Without ``resampling`` there are no means and no differences."""
    means: dict[str, float] = {}
    differences: dict[str, Difference] = {}
    if resampling is not None:
        figures = {name: _figures(run, name) for name in METRICS}
        means = {name: mean(values) for name, values in figures.items()}
        if run is not baseline:
            differences = {
                name: resampling.compare(_figures(baseline, name), values)
                for name, values in figures.items()
            }
    answered = [answer.relevance for answer in run.answerable]
    absent = [answer.relevance for answer in run.answers if not answer.metrics]
    return Measured(
        means,
        differences,
        Relevance(mean(answered) if answered else None, mean(absent) if absent else None),
        sorted(answer.ms for answer in run.answers)[len(run.answers) // 2],
        run.notes,
        run.answers,
    )


def _figures(run: _SystemRun, metric: str) -> list[float]:
    return [answer.metrics[metric] for answer in run.answerable]


# --- metrics of one ranking -------------------------------------------------------------
# A ranking lists document names, best first, without repetition; judged maps name → grade. A grade
# of 0 or less means "not relevant", and a document without a grade counts as not relevant too. The
# definitions are those of trec_eval, so figures may be compared with published ones. Every metric
# is 0 to 1; it is not defined for a question without any relevant document.

Ranking = Sequence[str]
Judged = Mapping[str, int]


def ndcg(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """
    Normalised discounted cumulative gain of the first ``k`` (trec_eval: ``ndcg_cut.k``).

    The gain is the grade itself, and the discount is log2(rank + 1). The ideal ranking has all
    judged documents in order of their grades (Järvelin and Kekäläinen 2002, as in trec_eval).
    """
    ideal = _dcg(sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k])
    if ideal == 0:
        raise ValueError("no document was judged relevant")
    return min(1.0, _dcg([max(0, judged.get(name, 0)) for name in ranking[:k]]) / ideal)


def _dcg(gains: Sequence[int]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))


def reciprocal_rank(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """1 / rank of the first relevant document, 0 if it is not among the first ``k`` (MRR@k)."""
    for rank, name in enumerate(ranking[:k], 1):
        if judged.get(name, 0) > 0:
            return 1 / rank
    return 0.0


def success(ranking: Ranking, judged: Judged, k: int = 10) -> float:
    """1 if a relevant document is among the first ``k``, else 0 (trec_eval: ``success.k``)."""
    return float(any(judged.get(name, 0) > 0 for name in ranking[:k]))


def recall(ranking: Ranking, judged: Judged, k: int = 100) -> float:
    """The share of all relevant documents among the first ``k`` (trec_eval: ``recall.k``)."""
    relevant = sum(grade > 0 for grade in judged.values())
    if relevant == 0:
        raise ValueError("no document was judged relevant")
    return sum(judged.get(name, 0) > 0 for name in ranking[:k]) / relevant


#: The metrics, in the order of the table.
METRICS: Mapping[str, Callable[[Ranking, Judged], float]] = {
    "nDCG@10": ndcg,
    "MRR@10": reciprocal_rank,
    "success@1": lambda ranking, judged: success(ranking, judged, 1),
    "success@10": success,
    "recall@100": recall,
}

#: The number of hits to request: the largest rank that a metric looks at.
DEPTH = 100


Need = Literal["vectors", "expander", "reranker", "no reranker"]


class System(NamedTuple):
    """
    A search that can be measured.

    Attributes:
        request: Its options; query and filters are those of the question.
        needs: Without these the search cannot answer, or answers as another one does.
    """

    command: SearchCommand
    request: SearchRequest
    needs: tuple[Need, ...] = ()


#: How the name of a system begins that leaves out a part of `query`.
WITHOUT = "query --without "

_QUERY = SearchRequest("", limit=DEPTH)

#: The systems by name, in the order of the table.
SYSTEMS: Mapping[str, System] = {
    "search": System("search", _QUERY),
    # Without the default minimum score: the order of the hits is measured, not where it is cut.
    "vsearch": System("vsearch", replace(_QUERY, min_score=0.0)),
    "query": System("query", _QUERY),
    **{
        # With a reranker the evidence does not order the hits.
        WITHOUT + part: System(
            "query", replace(_QUERY, without=(part,)), ("vectors", "no reranker")
        )
        for part in get_args(EvidencePart)
    },
    WITHOUT + "model": System("query", replace(_QUERY, without=("model",)), ("reranker",)),
    "query --no-rerank": System("query", replace(_QUERY, rerank=False)),
    "query --no-expand": System("query", replace(_QUERY, expand=False), ("expander",)),
    "query --no-rerank --no-expand": System(
        "query", replace(_QUERY, rerank=False, expand=False), ("expander",)
    ),
}


def systems_for(kb: KnowledgeBase) -> tuple[str, ...]:
    """The systems whose answers may differ with the vectors and models of a knowledge base."""
    available: dict[Need, bool] = {
        "vectors": kb.status().has_vector_index,
        "expander": kb.has_expander,
        "reranker": kb.has_reranker,
        "no reranker": not kb.has_reranker,
    }
    return tuple(
        name for name, system in SYSTEMS.items() if all(available[need] for need in system.needs)
    )


# --- the difference of two systems on the same questions --------------------------------
# It is the mean difference of a metric, with its interval. The difference is paired: it is taken
# for each question, so that hard and easy questions cancel out. Its interval comes from the
# bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13; for retrieval:
# Sakai, SIGIR 2006): each resample draws as many questions as there are, with replacement, and the
# middle 95 % of the means of all resamples are the interval. The same questions give the same
# interval on every machine.

SEED = 20061
RESAMPLES = 5000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of (other - baseline) over the questions, and its interval."""

    mean: float
    low: float
    high: float

    def __neg__(self) -> Difference:
        """The difference of the baseline from the other."""
        return Difference(-self.mean, -self.high, -self.low)

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


class Resampling:
    """The draws for ``questions`` questions; all comparisons use the same draws."""

    def __init__(self, questions: int, *, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        """
        Args:
            questions: The number of questions, at least 1.
            resamples: The number of resamples, each of as many questions.
        """
        # Python's generator gives the same numbers in every version; numpy's need not.
        draw = random.Random(seed).random  # noqa: S311  no secret
        self._times = libraries.np.zeros((resamples, questions), libraries.np.uint16)
        for row in self._times:
            for _ in range(questions):
                row[floor(draw() * questions)] += 1

    def compare(self, baseline: Sequence[float], other: Sequence[float]) -> Difference:
        """The difference of two systems; both lists have a figure per question, in one order."""
        differences = libraries.np.array(other, libraries.np.float64) - libraries.np.array(
            baseline, libraries.np.float64
        )
        means = libraries.np.sort(self._times @ differences) / len(differences)
        low, high = _quantile(means, (1 - LEVEL) / 2), _quantile(means, (1 + LEVEL) / 2)
        return Difference(mean(list(differences)), low, high)


def _quantile(ordered: NDArray[np.float64], share: float) -> float:
    return float(ordered[min(len(ordered) - 1, floor(share * len(ordered)))])


def mean(values: Sequence[float]) -> float:
    """The mean; the sum is exact, so the order of the values does not matter."""
    return fsum(values) / len(values)
