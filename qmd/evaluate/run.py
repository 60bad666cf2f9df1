"""Ask every question of every system, and measure what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from qmd.errors import InferenceError, InputError
from qmd.evaluate.compare import Difference, Resampling, mean
from qmd.evaluate.metrics import DEPTH, METRICS
from qmd.evaluate.names import Names
from qmd.values import Filters, Progress

if TYPE_CHECKING:
    from qmd.evaluate.judgments import Judgments, Question
    from qmd.kb import KnowledgeBase
    from qmd.values import ProgressCallback, SearchReply

Ask = Callable[["KnowledgeBase", str, Filters], "SearchReply"]

SYSTEMS: Mapping[str, Ask] = {
    "search": lambda kb, text, only: kb.search(text, limit=DEPTH, filters=only),
    # Without the least score that people get by default: an order is measured, not a cut.
    "vsearch": lambda kb, text, only: kb.vsearch(text, limit=DEPTH, min_score=0.0, filters=only),
    "query": lambda kb, text, only: kb.query(text, limit=DEPTH, filters=only),
    "query --no-rerank": lambda kb, text, only: kb.query(
        text, limit=DEPTH, filters=only, rerank=False
    ),
    "query --no-expand": lambda kb, text, only: kb.query(
        text, limit=DEPTH, filters=only, expand=False
    ),
    "query --no-rerank --no-expand": lambda kb, text, only: kb.query(
        text, limit=DEPTH, filters=only, rerank=False, expand=False
    ),
}
"""What can be compared: the three searches, and `query` without each of its parts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a system said to a question: the rank of the first relevant document (None: not among
    the first 100), the metrics, the best hit and its ``relevance``.
    """

    question: str
    rank: int | None
    metrics: Mapping[str, float]
    best: str | None
    relevance: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """
    One system: means over the questions that have an answer, and differences from the baseline.

    ``relevance`` is that of the best hit, in the mean, where there is an answer and (``absent``)
    where there is none; ``answers`` are in the order of the questions.
    """

    means: Mapping[str, float]
    differences: Mapping[str, Difference]
    answers: tuple[Answer, ...]
    relevance: float | None
    absent: float | None
    median_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """``left_out``: system → why it could not answer. ``unknown``: documents not found."""

    name: str
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
    systems: Sequence[str] = tuple(SYSTEMS),
    baseline: str = "query",
    collections: Sequence[str] = (),
    ids: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
) -> BenchReport:
    """
    Measure ``systems`` on ``judgments``.

    Args:
        systems: Of `SYSTEMS`; the first that can answer takes the place of a missing baseline.
        collections: Where is searched; none for those the judgments are about.
        ids: Judged id → ``collection/path``, where the documents came with the judgments.

    Raises:
        InputError: No judged document is in the database.
        CollectionNotFoundError.
    """
    if not collections and judgments.collection is not None:
        collections = (judgments.collection,)
    only = Filters(collections=tuple(collections))
    files = [each.file for place in collections or ("",) for each in kb.documents(place)]
    judged, unknown = _resolved(judgments, files, ids)
    answered = [relevant for relevant in judged.values() if relevant]
    if answered and len(unknown) == sum(map(len, judged.values())):
        raise InputError(
            f"None of the documents that {judgments.name} names is in the database",
            hint=f"It names {unknown[0]}, for example; 'qmd ls' lists what there is.",
        )
    answers: dict[str, list[Answer]] = {}
    notes: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for number, system in enumerate(systems):
        told: dict[str, None] = {}
        try:
            answers[system] = [
                _ask(kb, SYSTEMS[system], question, judged[question.id], only, told)
                for question in _ticked(judgments, system, number, len(systems), progress)
            ]
        except InferenceError as error:
            left_out[system] = str(error)
        notes[system] = tuple(told)
    if answers and baseline not in answers:
        baseline = next(iter(answers))
    resampling = Resampling(len(answered)) if answered else None
    return BenchReport(
        judgments.name,
        len(judgments.questions),
        len(answered),
        len(files),
        baseline,
        {
            system: _measured(given, answers[baseline], resampling, notes[system])
            for system, given in answers.items()
        },
        left_out,
        tuple(unknown),
    )


def _resolved(
    judgments: Judgments, files: Sequence[str], ids: Mapping[str, str] | None
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Question → document → grade, and the documents that are not there."""
    judged: dict[str, dict[str, int]] = {}
    unknown: dict[str, None] = {}
    names = Names(files)
    for question in judgments.questions:
        if ids is None:
            judged[question.id], missing = names.resolve(question.relevant)
        else:
            judged[question.id] = {ids.get(k, k): grade for k, grade in question.relevant.items()}
            missing = [given for given in question.relevant if given not in ids]
        unknown.update(dict.fromkeys(missing))
    return judged, list(unknown)


def _ticked(
    judgments: Judgments, system: str, number: int, systems: int, progress: ProgressCallback | None
) -> Iterator[Question]:
    total = len(judgments.questions)
    for done, question in enumerate(judgments.questions):
        if progress is not None:
            progress(Progress("bench", number * total + done, systems * total, system))
        yield question


def _ask(
    kb: KnowledgeBase,
    ask: Ask,
    question: Question,
    judged: Mapping[str, int],
    only: Filters,
    notes: dict[str, None],
) -> Answer:
    began = perf_counter()
    reply = ask(kb, question.text, only)
    seconds = perf_counter() - began
    if reply.degraded is not None:
        notes[reply.degraded] = None
    ranking = [hit.file for hit in reply.hits]
    ranks = (rank for rank, file in enumerate(ranking, 1) if judged.get(file, 0) > 0)
    return Answer(
        question.id,
        next(ranks, None),
        {name: metric(ranking, judged) for name, metric in METRICS.items()} if judged else {},
        ranking[0] if ranking else None,
        reply.hits[0].relevance if reply.hits else 0.0,
        seconds,
    )


def _measured(
    answers: Sequence[Answer],
    baseline: Sequence[Answer],
    resampling: Resampling | None,
    notes: tuple[str, ...],
) -> Measured:
    answered = [answer for answer in answers if answer.metrics]
    reference = [answer for answer in baseline if answer.metrics]
    means: dict[str, float] = {}
    differences: dict[str, Difference] = {}
    for name in METRICS if resampling is not None else ():
        figures = [answer.metrics[name] for answer in answered]
        means[name] = mean(figures)
        if answers is not baseline and resampling is not None:
            figures_of_baseline = [answer.metrics[name] for answer in reference]
            differences[name] = resampling.compare(figures_of_baseline, figures)
    absent = [answer.relevance for answer in answers if not answer.metrics]
    return Measured(
        means,
        differences,
        tuple(answers),
        mean([answer.relevance for answer in answered]) if answered else None,
        mean(absent) if absent else None,
        sorted(answer.seconds for answer in answers)[len(answers) // 2],
        notes,
    )
