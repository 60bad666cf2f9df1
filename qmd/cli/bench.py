"""``qmd bench`` measures the searches on questions whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import count
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, one_line, write, write_json
from qmd.evaluate import compare, corpus, fixtures
from qmd.evaluate.metrics import DEPTH, METRICS
from qmd.evaluate.run import run
from qmd.evaluate.systems import SYSTEMS, WITHOUT, systems_for

if TYPE_CHECKING:
    from qmd.evaluate.compare import Difference
    from qmd.evaluate.judgments import Judgments
    from qmd.evaluate.run import BenchReport, Measured, SystemAnswer
    from qmd.kb import KnowledgeBase
    from qmd.values import ProgressCallback


@command(
    "bench",
    usual=(*("--qrels", "--baseline", "--system", "--collection", "--limit", "--keep", "--json"),),
    examples=(
        "qmd bench questions.json -c notes",
        "qmd bench beir/scifact --keep ~/bench --json",
        "qmd bench topics.txt --qrels qrels.txt --system 'query --no-rerank'",
    ),
)
@click.argument("fixture", type=click.Path(path_type=Path))
@click.option(
    "--qrels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TREC judgments; FIXTURE is then the file of topics.",
)
@click.option(
    "--baseline",
    type=click.Choice(tuple(SYSTEMS)),
    default="query",
    show_default=True,
    metavar="NAME",
    help="The system that the others are compared with.",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=click.Choice(tuple(SYSTEMS)),
    metavar="NAME",
    help="Only this system and the baseline; repeat for several.",
)
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Only this collection; repeat for several.",
    shell_complete=complete.collections,
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only N of the questions, spread evenly.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep there what is built for a fixture with documents, and use it again.",
)
@json_option
def bench(
    fixture: Path,
    qrels: Path | None,
    baseline: str,
    systems: tuple[str, ...],
    collections: tuple[str, ...],
    limit: int | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """
    Measure the searches on questions whose answers are known.

    FIXTURE is a JSON file of queries and the files that answer them, or a directory in BEIR's
    form, which brings its own documents. search, vsearch and query answer the same questions,
    and query without each of its parts in turn; with a reranker or an expander in the settings
    also without that. Printed are nDCG@10, MRR@10, success and recall, and the paired
    differences from the baseline with their 95 % intervals. docs/evaluation.md describes files
    and figures.
    """
    judgments = fixtures.read(fixture.expanduser(), qrels.expanduser() if qrels else None)
    if limit is not None:
        judgments = judgments.first(limit)
    if judgments.documents is not None and collections:
        raise click.UsageError("-c has no meaning for a fixture that brings its own documents.")
    needs_vectors = not systems or {*systems, baseline} != {"search"}
    with (
        progress_bar() as progress,
        _opened(judgments, keep, needs_vectors, progress) as (kb, ids),
    ):
        report = run(
            kb,
            judgments,
            systems=[name for name in SYSTEMS if name in (*(systems or systems_for(kb)), baseline)],
            baseline=baseline,
            collections=collections,
            ids=ids,
            progress=progress,
        )
    _warn(report)
    if as_json:
        write_json(bench_object(report))
    else:
        render_bench(report)


def _warn(report: BenchReport) -> None:
    """Name on stderr what could not be measured."""
    for system, reason in report.left_out.items():
        note(f"qmd: left out {system}: {reason}", style="warning")
    if report.unknown:
        note(
            f"qmd: not in the database, so counted as not found: "
            f"{count(len(report.unknown), 'judged document')} ({', '.join(report.unknown[:3])}"
            f"{', …' if len(report.unknown) > 3 else ''})",
            style="warning",
        )


@contextmanager
def _opened(
    judgments: Judgments,
    keep: Path | None,
    needs_vectors: bool,
    progress: ProgressCallback | None,
) -> Iterator[tuple[KnowledgeBase, Mapping[str, str] | None]]:
    """
    Open the knowledge base to measure, and give the fixture's document ids for its paths.

    A fixture that brings documents gets a database for them alone; otherwise it is the user's
    database, and there are no ids.
    """
    if judgments.documents is None:
        with session().open(ask_server=True) as kb:
            yield kb, None
        return

    built = nullcontext(str(keep.expanduser())) if keep else TemporaryDirectory(prefix="qmd-bench-")
    with built as folder:
        name = f"{judgments.name}-{corpus.fingerprint(judgments.documents)}"
        directory = Path(folder).absolute() / name
        ids = corpus.write(judgments.documents, directory)
        bench_session = Session()
        bench_session.db = str(directory.with_name(f"{name}.sqlite"))
        with bench_session.open(create=True) as kb:
            if corpus.COLLECTION not in {collection.name for collection in kb.collections()}:
                kb.add_collection(directory, name=corpus.COLLECTION)
            kb.index(progress=progress)
            if needs_vectors and kb.can_embed():
                kb.embed(progress=progress)
            yield kb, ids


# A line of a table has at most 80 columns. JSON has the differences of all metrics.
_COMPARED_METRICS = ("MRR@10", "success@10")
_SHORT = {"success@1": "S@1", "success@10": "S@10", "recall@100": "R@100"}
_MOST_NOTES = 3
_ENOUGH_QUESTIONS = 30  # for intervals that can be relied on


def render_bench(report: BenchReport) -> None:
    lines = [
        f"{one_line(report.name)}: {count(report.questions, 'question')}, "
        f"{count(report.documents, 'document')}",
        *_means(report),
        *_differences(report),
        *_gains(report),
        *_relevances(report),
    ]
    for name, system in report.systems.items():
        lines += [f"{name}: {one_line(note)}" for note in system.notes[:_MOST_NOTES]]
        others = len(system.notes) - _MOST_NOTES
        if others > 0:
            lines.append(f"{name}: and {count(others, 'other note')}; --json has them all")
    write("\n".join(lines) + "\n")


def _means(report: BenchReport) -> list[str]:
    """The table of the means of each metric; empty if no question has an answer."""
    if not report.answerable:
        return []
    rows = [
        [name, *(f"{system.means[metric]:.3f}" for metric in METRICS), _milliseconds(system)]
        for name, system in report.systems.items()
    ]
    return ["", *table(["", *(_SHORT.get(name, name) for name in METRICS), "ms"], rows)]


def _differences(report: BenchReport) -> list[str]:
    """The table of the differences of each system from the baseline."""
    compared = {name: system for name, system in report.systems.items() if system.differences}
    rows = [
        [name, *(_difference(system.differences[metric]) for metric in _COMPARED_METRICS)]
        for name, system in compared.items()
        if not _is_gain(report, name)
    ]
    lines = []
    if rows:
        lines += ["", f"Difference from {report.baseline}, 95 % interval (* leaves out 0)"]
        lines += table(["", *_COMPARED_METRICS], rows)
    return lines


def _gains(report: BenchReport) -> list[str]:
    """The table of what each part of `query` gains, and a warning about few questions."""
    rows = [
        [
            name.removeprefix(WITHOUT),
            *(_difference(-system.differences[metric]) for metric in _COMPARED_METRICS),
        ]
        for name, system in report.systems.items()
        if system.differences and _is_gain(report, name)
    ]
    lines = []
    if rows:
        lines += ["", "What each part of query gains, beside query --without it"]
        lines += table(["", *_COMPARED_METRICS], rows)
    is_compared = any(system.differences for system in report.systems.values())
    if is_compared and report.answerable < _ENOUGH_QUESTIONS:
        lines.append(f"{count(report.answerable, 'question')}: too few to rely on intervals.")
    return lines


def _is_gain(report: BenchReport, system: str) -> bool:
    """Whether the difference of a system from the baseline shows what a part of `query` gains."""
    return report.baseline == "query" and system.startswith(WITHOUT)


def _relevances(report: BenchReport) -> list[str]:
    """The table of the relevance of the best hits; empty if every question has an answer."""
    unanswerable = report.questions - report.answerable
    if not unanswerable:
        return []
    rows = [
        [name, _share(system.relevance), _share(system.absent)]
        for name, system in report.systems.items()
    ]
    title = f"Relevance of the best hit ({count(unanswerable, 'question')} without an answer)"
    return ["", title, *table(["", "answered", "not there"], rows)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column is set to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]


def _difference(difference: Difference) -> str:
    mark = "*" if difference.sure else " "
    low, high = _signed(difference.low), _signed(difference.high)
    return f"{_signed(difference.mean)} [{low}, {high}]{mark}"


def _signed(value: float) -> str:
    """Such as ``+.031``; the values lie between -1 and 1."""
    return f"{value + 0.0:+.3f}".replace("0.", ".", 1)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _milliseconds(system: Measured) -> str:
    return f"{system.median_s * 1000:.0f}"


def bench_object(report: BenchReport) -> dict[str, Any]:
    return {
        "fixture": report.name,
        "questions": report.questions,
        "answerable": report.answerable,
        "documents": report.documents,
        "baseline": report.baseline,
        "depth": DEPTH,
        "interval": {
            "method": "paired bootstrap, percentiles",
            "level": compare.LEVEL,
            "resamples": compare.RESAMPLES,
            "seed": compare.SEED,
        },
        "systems": {name: _system_object(system) for name, system in report.systems.items()},
        "left_out": dict(report.left_out),
        "unknown": list(report.unknown),
    }


def _system_object(system: Measured) -> dict[str, Any]:
    return {
        "metrics": {name: round(value, 6) for name, value in system.means.items()},
        "differences": {
            name: {
                "mean": round(difference.mean, 6),
                "low": round(difference.low, 6),
                "high": round(difference.high, 6),
            }
            for name, difference in system.differences.items()
        },
        "relevance": {"answered": system.relevance, "absent": system.absent},
        "median_ms": round(system.median_s * 1000, 2),
        "notes": list(system.notes),
        "answers": [_answer_object(answer) for answer in system.answers],
    }


def _answer_object(answer: SystemAnswer) -> dict[str, Any]:
    return {
        "id": answer.question,
        "rank": answer.rank,
        "best": answer.best,
        "relevance": answer.relevance,
        "metrics": {name: round(value, 6) for name, value in answer.metrics.items()},
        "ms": round(answer.seconds * 1000, 2),
    }
