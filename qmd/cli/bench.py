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
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, one_line, progress_bar, write, write_json
from qmd.evaluate import fixtures
from qmd.evaluate.run import (
    DEPTH,
    LEVEL,
    METRICS,
    RESAMPLES,
    SEED,
    SYSTEMS,
    WITHOUT,
    BenchReport,
    Difference,
    run,
    systems_for,
)
from qmd.values.text import counted
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.evaluate.fixtures import Judgments
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
            f"{counted(len(report.unknown), 'judged document')} ({', '.join(report.unknown[:3])}"
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
        name = f"{judgments.name}-{fixtures.fingerprint(judgments.documents)}"
        directory = Path(folder).absolute() / name
        ids = fixtures.write(judgments.documents, directory)
        bench_session = Session()
        bench_session.db = str(directory.with_name(f"{name}.sqlite"))
        with bench_session.open(create=True) as kb:
            if fixtures.COLLECTION not in {collection.name for collection in kb.collections()}:
                kb.add_collection(directory, name=fixtures.COLLECTION)
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
        f"{one_line(report.name)}: {counted(report.questions, 'question')}, "
        f"{counted(report.documents, 'document')}",
        *_means(report),
        *_comparisons(report),
        *_relevances(report),
    ]
    for name, system in report.systems.items():
        lines += [f"{name}: {one_line(note)}" for note in system.notes[:_MOST_NOTES]]
        others = len(system.notes) - _MOST_NOTES
        if others > 0:
            lines.append(f"{name}: and {counted(others, 'other note')}; --json has them all")
    write("\n".join(lines) + "\n")


def _means(report: BenchReport) -> list[str]:
    """The table of the means of each metric; empty if no question has an answer."""
    if not report.answerable:
        return []
    rows = [
        [name, *(f"{system.means[metric]:.3f}" for metric in METRICS), f"{system.median_ms:.0f}"]
        for name, system in report.systems.items()
    ]
    return ["", *table(["", *(_SHORT.get(name, name) for name in METRICS), "ms"], rows)]


def _comparisons(report: BenchReport) -> list[str]:
    """
    The tables of the differences from the baseline, and of what each part of `query` gains.

    A part gains what `query` is ahead of `query` without it.
    """
    compared, gains = {}, {}
    for name, system in report.systems.items():
        if report.baseline == "query" and name.startswith(WITHOUT):
            gains[name.removeprefix(WITHOUT)] = {
                metric: -difference for metric, difference in system.differences.items()
            }
        elif system.differences:
            compared[name] = system.differences
    lines = []
    for title, systems in (
        (f"Difference from {report.baseline}, 95 % interval (* leaves out 0)", compared),
        ("What each part of query gains, beside query --without it", gains),
    ):
        rows = [
            [name, *(_difference(differences[metric]) for metric in _COMPARED_METRICS)]
            for name, differences in systems.items()
            if differences
        ]
        lines += ["", title, *table(["", *_COMPARED_METRICS], rows)] if rows else []
    if lines and report.answerable < _ENOUGH_QUESTIONS:
        lines.append(f"{counted(report.answerable, 'question')}: too few to rely on intervals.")
    return lines


def _relevances(report: BenchReport) -> list[str]:
    """The table of the relevance of the best hits; empty if every question has an answer."""
    unanswerable = report.questions - report.answerable
    if not unanswerable:
        return []
    rows = [
        [name, _share(system.relevance.answered), _share(system.relevance.absent)]
        for name, system in report.systems.items()
    ]
    title = f"Relevance of the best hit ({counted(unanswerable, 'question')} without an answer)"
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


def bench_object(report: BenchReport) -> dict[str, Any]:
    """The report for JSON, with figures to six places."""
    about = to_wire(report)
    about["systems"] = {
        name: to_wire(system)
        | {"differences": {key: to_wire(each) for key, each in system.differences.items()}}
        for name, system in report.systems.items()
    }
    first = {name: about.pop(name) for name in _FIRST}
    rounded: dict[str, Any] = _rounded({**first, "depth": DEPTH, "interval": _INTERVAL, **about})
    return rounded


#: The fields in front of those that say how was measured.
_FIRST = ("fixture", "questions", "answerable", "documents", "baseline")


_INTERVAL = {
    "method": "paired bootstrap, percentiles",
    "level": LEVEL,
    "resamples": RESAMPLES,
    "seed": SEED,
}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value
