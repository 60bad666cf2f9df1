"""``qmd ask``: a question to a language model that uses the tools of the server."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli.command import command, json_option
from qmd.cli.serve import tool_options
from qmd.cli.session import session
from qmd.cli.terminal import note, write_json
from qmd.errors import TransientInferenceError

if TYPE_CHECKING:
    from qmd.agent.loop import ExecutionLoop, Happening, LoopResult
    from qmd.inference.llm import LlmClient
    from qmd.kb import KnowledgeBase

F = TypeVar("F", bound=Callable[..., Any])

ROUNDS = 10


def _setting(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    session().set_flag(str(param.name), None if value is None else str(value))


def _model_options(function: F) -> F:
    options = [
        click.option("--llm-url", callback=_setting, expose_value=False, metavar="URL",
                     help="The server's address, as far as /v1.  "
                          "[env: QMD_LLM_URL; default: https://api.deepseek.com]"),
        click.option("--llm-model", callback=_setting, expose_value=False, metavar="NAME",
                     help="The model.  [env: QMD_LLM_MODEL; default: deepseek-chat]"),
        click.option("--timeout", "llm_timeout", callback=_setting, expose_value=False,
                     type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                     help="Wait so long for the next piece of an answer.  "
                          "[env: QMD_LLM_TIMEOUT; default: 120]"),
        click.option("--max-rounds", type=click.IntRange(1, ROUNDS), default=ROUNDS,
                     show_default=True, metavar="N", help="Ask the model so often at most."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "ask",
    examples=(
        "qmd ask 'what did we decide about backups, and where is it written?'",
        "qmd ask --read-only 数据库备份方案有哪些漏洞",
        "qmd ask --llm-url http://localhost:11434/v1 --llm-model qwen3:8b 'sum up plan'",
        "qmd ask --json 'which notes mention Docker?' | jq -r .finalResponse",
    ),
)
@click.argument("question", nargs=-1, required=True, metavar="QUESTION...")
@_model_options
@click.option("--read-only", is_flag=True, help="Leave out the tools that write.")
@tool_options
@json_option
def ask(
    question: tuple[str, ...],
    max_rounds: int,
    read_only: bool,
    toolsets: tuple[str, ...],
    as_json: bool,
) -> None:
    """
    Ask a language model that searches, reads and writes your notes.

    The model uses the tools of 'qmd server', under the same write policy; each use is shown.
    QUESTION '-' is read from stdin. Any server that speaks as OpenAI's does will do; the key
    comes from QMD_LLM_API_KEY, DEEPSEEK_API_KEY, or a file of mode 600 (QMD_LLM_KEY_FILE). What
    the model reads of your notes is sent to that server.
    """
    asked = _question(question)
    here = session()
    settings = here.llm()
    from qmd.inference.llm import LlmClient

    with (
        here.open(
            create=here.settings.vault is not None and not read_only,
            write=not read_only,
            ask_server=True,
            read_only_files=read_only,
        ) as kb,
        LlmClient(settings) as model,
    ):
        result = _run(kb, model, asked, max_rounds, read_only, toolsets, as_json)
    if as_json:
        _write_run(asked, settings.model, result)
    if result.error is not None:
        raise result.error
    if result.interrupted:
        here.interrupted = _done_so_far(result)
        raise KeyboardInterrupt
    if not as_json:
        _warn(result)


def _question(words: tuple[str, ...]) -> str:
    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    if not text.strip():
        raise click.UsageError("The question is empty.")
    return text.strip()


def _run(
    kb: KnowledgeBase,
    model: LlmClient,
    question: str,
    max_rounds: int,
    read_only: bool,
    toolsets: tuple[str, ...],
    as_json: bool,
) -> LoopResult:
    from qmd.agent.executor import ToolExecutor
    from qmd.agent.loop import ExecutionLoop
    from qmd.agent.prompt import system_prompt
    from qmd.cli.ask_view import view_of_a_run
    from qmd.tools.toolsets import select

    executor = ToolExecutor(kb, select(toolsets, read_only=read_only).tools)
    system = system_prompt(
        executor.definitions(),
        collections=kb.collections(),
        today=datetime.now().astimezone().date(),
    )
    with view_of_a_run(model.settings.model, silent=as_json) as show, _interrupts() as interrupts:

        def listen(happening: Happening) -> None:
            interrupts.heed(happening)
            show(happening)

        loop = ExecutionLoop(
            model,
            executor,
            system=system,
            max_iterations=max_rounds,
            listen=listen,
            stopped=lambda: interrupts.asked,
        )
        return _with_second_chances(loop, loop.run(question), as_json)


def _with_second_chances(loop: ExecutionLoop, result: LoopResult, as_json: bool) -> LoopResult:
    """Where somebody sits there, an error that may pass is no reason to lose what was done."""
    someone = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    while someone and isinstance(result.error, TransientInferenceError):
        note(f"qmd: {result.error}", style="warning")
        if not click.confirm("Try again?", default=True, err=True):
            break
        result = loop.resume(result)
    return result


def _write_run(question: str, model: str, result: LoopResult) -> None:
    error = result.error
    shown = (
        None if error is None else {"code": error.code, "message": str(error), "hint": error.hint}
    )
    write_json({"question": question, "model": model, **result.as_json(), "error": shown})


def _done_so_far(result: LoopResult) -> str:
    done = [each.call.tool for each in result.tool_executions]
    return f"Tools used by then: {', '.join(done)}." if done else "No tool was used by then."


def _warn(result: LoopResult) -> None:
    if result.reached_max_iterations:
        rounds = "1 round" if result.iteration_count == 1 else f"{result.iteration_count} rounds"
        note(
            f"qmd: stopped after {rounds}: "
            "the model still wanted to use tools. Ask for less at once.",
            style="warning",
        )
    elif result.cut_off:
        note("qmd: the server cut the answer off: it may be incomplete.", style="warning")


class _Interrupts:
    """Ctrl-C ends the waiting for the model at once, and a tool only when it is done."""

    def __init__(self) -> None:
        self.asked = False
        self._in_tool = False

    def heed(self, happening: Happening) -> None:
        from qmd.agent.loop import ToolExecution, ToolStarted

        if isinstance(happening, (ToolStarted, ToolExecution)):
            self._in_tool = isinstance(happening, ToolStarted)

    def handle(self, number: int, frame: FrameType | None) -> None:
        waits = self._in_tool and not self.asked
        self.asked = True
        if not waits:  # it is not in a tool, or the user is in earnest
            raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    before = signal.signal(signal.SIGINT, interrupts.handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
