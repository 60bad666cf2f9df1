"""
How good are the answers of the agent? Any model server, a fixture of questions.

    python benchmarks/agent.py FIXTURE [--llm-url URL] [--llm-model NAME] [-n N] [--json]

docs/evaluation.md describes the fixture and the figures. All other options and settings are those
of `qmd ask`; `--help` lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from agent_bench import fixture as fixtures
from agent_bench import run
from agent_bench.metrics import mean_of

from qmd.agent.chat import AgentTurn, Chats
from qmd.agent.loop import ChatModel
from qmd.cli.ask import model_options
from qmd.cli.bench import table
from qmd.cli.command import command, json_option
from qmd.cli.main import cli, main
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, progress_bar, write, write_json
from qmd.inference.llm import LlmClient
from qmd.kb import KnowledgeBase
from qmd.values.text import counted

_SHARES = ("precision", "recall", "facts", "forbidden_absent")
_MAX_ANSWER_CHARS = 4_000  # of an answer in the JSON


@command("agent", examples=("python benchmarks/agent.py questions.json --llm-model qwen3:8b",))
@click.argument("fixture", type=click.Path(path_type=Path))
@click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", help="Only N questions, spread evenly."
)
@model_options
@json_option
@click.pass_context
def agent(
    ctx: click.Context, fixture: Path, limit: int | None, max_rounds: int, as_json: bool
) -> None:
    """
    Measure the answers of 'qmd ask' on questions whose answers are known.

    Each question has a conversation of its own that only reads. A question that fails is reported
    and does not end the run; the exit status is 1 if all fail.
    """
    questions = fixtures.read(fixture.expanduser())
    if limit is not None:
        questions = questions.first(limit)
    settings = session().llm()
    with progress_bar() as progress, session().open(ask_server=True) as kb:
        report = run.run(
            kb,
            questions,
            LlmClient(settings),
            _asker(kb, max_rounds),
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
    if report.failed == len(report.answers):
        ctx.exit(1)


def _asker(kb: KnowledgeBase, max_rounds: int) -> Callable[[str, ChatModel], AgentTurn]:
    """Asks each question as ``qmd ask`` does: with the tools that read, and checked citations."""

    def ask(question: str, model: ChatModel) -> AgentTurn:
        turn = Chats(kb, model=model, is_kept=False, max_rounds=max_rounds).start(question)
        turn.wait()
        return turn

    return ask


def report_lines(report: run.AgentReport) -> list[str]:
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
        f"{one_line(report.name)}: {counted(len(report.answers), 'question')}, "
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


def summary(report: run.AgentReport) -> dict[str, float | None]:
    """The means of the figures over the questions for which they are defined."""
    names = (*_SHARES, "search_hit", "rounds", "tool_calls", "tokens", "seconds")
    return {name: mean_of([getattr(answer, name) for answer in report.answers]) for name in names}


def report_object(report: run.AgentReport) -> dict[str, Any]:
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


def _answer_object(answer: run.AgentAnswer) -> dict[str, Any]:
    figures = {name: _rounded(value) for name, value in asdict(answer).items()}
    return {**figures, "text": answer.text[:_MAX_ANSWER_CHARS]}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _tokens(tokens: int, estimated: bool) -> str:
    return f"{'~' if estimated else ''}{tokens:,}"


if __name__ == "__main__":
    cli.add_command(agent)
    sys.exit(main(["agent", *sys.argv[1:]]))
