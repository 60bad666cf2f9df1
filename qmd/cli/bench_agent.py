"""Runs `qmd bench --agent`, and prints its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd.cli.progress import progress_bar
from qmd.cli.render_bench import table
from qmd.cli.render_reports import count
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write, write_json

if TYPE_CHECKING:
    from qmd.agent.bench.run import AgentAnswer, AgentReport
    from qmd.agent.loop import LoopResult
    from qmd.agent.native import ToolModel
    from qmd.kb import KnowledgeBase

_SHARES = ("precision", "recall", "facts", "forbidden_absent")
_MAX_ANSWER_CHARS = 4_000  # of an answer in the JSON


def bench_agent(
    path: Path, *, limit: int | None, max_rounds: int, model_time_s: float, as_json: bool
) -> bool:
    """
    Measure the agent and print the report.

    Args:
        model_time_s: The longest time for all answers of the model to one question, in seconds.

    Returns:
        Whether at least one question has an answer.
    """
    from qmd.agent.bench import fixture, run
    from qmd.inference.llm import LlmClient

    questions = fixture.read(path)
    if limit is not None:
        questions = questions.first(limit)
    settings = session().llm()
    with progress_bar() as progress, session().open(ask_server=True) as kb:
        report = run.run(
            kb,
            questions,
            LlmClient(settings),
            _asker(kb, max_rounds, model_time_s),
            model_name=settings.model,
            progress=progress,
        )
    if report.unknown:
        note(
            f"qmd: not in the database, so counted as not cited: {', '.join(report.unknown[:3])}"
            f"{', …' if len(report.unknown) > 3 else ''}",
            style="warning",
        )
    for answer in report.answers:
        if answer.error is not None:
            note(f"qmd: question {answer.question} failed: {answer.error}", style="warning")
    if as_json:
        write_json(report_object(report))
    else:
        write("\n".join(report_lines(report)) + "\n")
    return report.failed < len(report.answers)


def _asker(
    kb: KnowledgeBase, max_rounds: int, model_time_s: float
) -> Callable[[str, ToolModel], LoopResult]:
    """Asks each question as ``qmd ask`` does: with the tools that read, and checked citations."""
    from qmd.agent.checking import citation_check
    from qmd.agent.executor import ToolExecutor
    from qmd.agent.loop import ExecutionLoop
    from qmd.agent.native import with_tool_calls
    from qmd.agent.prompt import prompt_for
    from qmd.tools.toolsets import select

    executor = ToolExecutor(kb, select(()).tools)

    definitions = executor.definitions()

    def ask(question: str, model: ToolModel) -> LoopResult:
        system = prompt_for(kb, definitions)
        loop = ExecutionLoop(
            with_tool_calls(model, kb.language_model.tool_calls, system, definitions),
            executor,
            system=system,
            max_iterations=max_rounds,
            window=kb.language_model.window,
            model_time_s=model_time_s,
            check=citation_check(kb),
        )
        return loop.run(question)

    return ask


def report_lines(report: AgentReport) -> list[str]:
    """The report as a table with a row for each question and one for the means."""
    head = [
        "", "precision", "recall", "facts", "forbidden", "found", "rounds", "calls", "tokens", "s"
    ]  # fmt: skip
    rows = [
        [
            one_line(answer.question)[:20],
            *(_share(getattr(answer, name)) for name in _SHARES),
            {True: "yes", False: "no", None: ""}[answer.search_hit],
            str(answer.rounds),
            str(answer.tool_calls),
            _tokens(answer.tokens, answer.estimated),
            f"{answer.seconds:.1f}",
        ]
        for answer in report.answers
    ]
    means = summary(report)
    rows.append(
        [
            "mean",
            *(_share(means[name]) for name in _SHARES),
            _share(means["search_hit"]),
            f"{means['rounds']:.1f}",
            f"{means['tool_calls']:.1f}",
            _tokens(round(means["tokens"] or 0), any(a.estimated for a in report.answers)),
            f"{means['seconds']:.1f}",
        ]
    )
    lines = [
        f"{one_line(report.name)}: {count(len(report.answers), 'question')}, "
        f"{one_line(report.model)}" + (f", {report.failed} failed" if report.failed else ""),
        "",
        *table(head, rows),
    ]
    for answer in report.answers:
        lines += [f"{answer.question}: lacks {one_line(fact)}" for fact in answer.missing]
        lines += [f"{answer.question}: has {one_line(fact)}" for fact in answer.wrong]
    lines.append("found: a note that answers is among the first 10 hits of qmd query.")
    if any(answer.estimated for answer in report.answers):
        lines.append("~ estimated: the server did not count the tokens.")
    return lines


def summary(report: AgentReport) -> dict[str, float | None]:
    """The means of the figures over the questions for which they are defined."""
    from qmd.agent.bench.metrics import mean_of

    names = (*_SHARES, "search_hit", "rounds", "tool_calls", "tokens", "seconds")
    return {name: mean_of([getattr(answer, name) for answer in report.answers]) for name in names}


def report_object(report: AgentReport) -> dict[str, Any]:
    """The report for ``--json``."""
    return {
        "fixture": report.name,
        "model": report.model,
        "questions": len(report.answers),
        "failed": report.failed,
        "means": {name: _rounded(value) for name, value in summary(report).items()},
        "tokens": sum(answer.tokens for answer in report.answers),
        "tokens_estimated": any(answer.estimated for answer in report.answers),
        "unknown": list(report.unknown),
        "answers": [_answer_object(answer) for answer in report.answers],
    }


def _answer_object(answer: AgentAnswer) -> dict[str, Any]:
    figures = {name: _rounded(value) for name, value in asdict(answer).items()}
    return {**figures, "text": answer.text[:_MAX_ANSWER_CHARS]}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _tokens(tokens: int, estimated: bool) -> str:
    return f"{'~' if estimated else ''}{tokens:,}"
