"""Prints the measurements of `qmd bench` as tables, and turns them into JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qmd.cli.render_reports import count
from qmd.cli.terminal import one_line, write
from qmd.evaluate import compare
from qmd.evaluate.metrics import DEPTH, METRICS
from qmd.evaluate.systems import WITHOUT

if TYPE_CHECKING:
    from qmd.evaluate.compare import Difference
    from qmd.evaluate.run import BenchReport, Measured, SystemAnswer

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
