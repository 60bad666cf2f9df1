"""Runs each system on each question, and measures the rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from qmd.errors import InferenceError, InputError
from qmd.evaluate.compare import Difference, Resampling, mean
from qmd.evaluate.metrics import METRICS
from qmd.evaluate.names import DocumentNames
from qmd.evaluate.systems import SYSTEMS, systems_for
from qmd.values import Filters, Progress
from qmd.values.facts import Name

if TYPE_CHECKING:
    from qmd.evaluate.fixtures import JudgedQuestion, Judgments
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
