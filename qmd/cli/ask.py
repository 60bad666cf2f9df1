"""``qmd ask`` puts a question to a language model, which may use the tools of the server."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd import agent, cli
from qmd.cli.command import command, json_option
from qmd.cli.serve import tool_options
from qmd.cli.session import Session, session
from qmd.cli.setting_options import apply_options, setting_option
from qmd.cli.terminal import confirmed, note, one_line, write_json
from qmd.cli.terminal import write as print_text
from qmd.config import SETTINGS
from qmd.errors import TransientInferenceError
from qmd.inference import llm
from qmd.system.database_files import is_missing
from qmd.values.chats import check_question

if TYPE_CHECKING:
    from qmd.agent.loop import ExecutionLoop, Happening, LoopResult
    from qmd.inference.llm import LlmSettings
    from qmd.kb import KnowledgeBase
    from qmd.values.chats import ChatMode
    from qmd.values.proposed import Confirm

F = TypeVar("F", bound=Callable[..., Any])

ROUNDS = 10
#: The longest time for all answers of the model together, in seconds.
MODEL_TIME_S = 600.0


strict_option = click.option(
    "--strict", is_flag=True, help="Mark each sentence that no citation supports."
)


def mode_in_words(mode: ChatMode, *, agreed: bool) -> str:
    """What the agent may do; ``agreed``: the person has agreed to every write in advance."""
    if mode == "read":
        return "mode read: it only reads"
    return f"mode write: it may write {'notes' if agreed else 'what you agree to'}"


def introduce(model: str, mode: ChatMode, *, agreed: bool, commands: str = "") -> None:
    """Say on stderr who answers, what it may do, and what can be typed."""
    words = mode_in_words(mode, agreed=agreed)
    note(f"{one_line(model)} as agent · {words}{commands}", style="dim")


def model_options(function: F) -> F:
    options = [
        setting_option("llm_url"),
        setting_option("llm_model"),
        setting_option("llm_tool_calls"),
        setting_option("llm_timeout", click.FloatRange(0, min_open=True)),
        setting_option("ask_timeout", click.FloatRange(0, min_open=True)),
        setting_option("allow_insecure_key"),
        click.option("--max-rounds", type=click.IntRange(1, ROUNDS), default=ROUNDS,
                     show_default=True, metavar="N", help="Ask the model at most N times."),
    ]  # fmt: skip
    return apply_options(options, function)


@command(
    "ask",
    usual=(
        *("--write", "--yes", "--llm-url", "--llm-model", "--max-rounds", "--strict", "--toolset"),
        *("--vault", "--json"),
    ),
    examples=(
        "qmd ask 'what did we decide about backups, and where is it written?'",
        "qmd ask --write '把关于部署的笔记总结到 notes/部署.md'",
        "qmd ask --llm-url http://localhost:11434/v1 --llm-model qwen3:8b 'sum up plan'",
        "qmd ask --json 'which notes mention Docker?' | jq -r .finalResponse",
    ),
)
@click.argument("question", nargs=-1, metavar="[QUESTION]...")
@model_options
@click.option(
    "--write",
    is_flag=True,
    help=SETTINGS["ask_write"].help,
)
@click.option("--yes", is_flag=True, help="With --write: agree to every write in advance.")
@click.option("--read-only", is_flag=True, help="Only read: the default.")
@strict_option
@tool_options
@json_option
def ask(
    question: tuple[str, ...],
    max_rounds: int,
    write: bool,
    yes: bool,
    read_only: bool,
    strict: bool,
    toolsets: tuple[str, ...],
    as_json: bool,
) -> None:
    """
    Ask a language model that searches and reads your notes.

    With --write it may also write notes: inside the collections and the vault, never a file
    that steers other programs, and only what you have seen and agreed to. QUESTION '-' is all of
    stdin; without one, each line of a pipe is a question. Any OpenAI-compatible server works; the
    key comes from QMD_LLM_API_KEY, for DeepSeek also from DEEPSEEK_API_KEY, or from a file of mode
    600 (QMD_LLM_KEY_FILE). What the model reads of your notes is sent to that server. Its citations
    are compared with the notes; one that fails is marked "not found in the source".
    """
    command_session = session()
    may_write = _may_write(command_session, write=write, yes=yes, read_only=read_only)
    settings = command_session.llm()
    mode: ChatMode = "write" if may_write else "read"
    if not as_json:
        introduce(settings.model, mode, agreed=yes)
    for text in questions_from(question):
        result = _answer(
            text,
            settings,
            may_write=may_write,
            yes=yes,
            strict=strict,
            max_rounds=max_rounds,
            toolsets=toolsets,
            as_json=as_json,
        )
        if as_json:
            _write_run_as_json(text, settings.model, mode, result)
        if result.error is not None:
            raise result.error
        if result.interrupted:
            command_session.interrupted = _used_tools(result)
            raise KeyboardInterrupt
        if result.warning is not None:
            note(f"qmd: {result.warning}", style="warning")


def _answer(
    question: str,
    settings: LlmSettings,
    *,
    may_write: bool,
    yes: bool,
    strict: bool,
    max_rounds: int,
    toolsets: tuple[str, ...],
    as_json: bool,
) -> LoopResult:
    """Put one question to the model, and show its run."""
    with (
        cli.ask_view.view_of_a_run(settings.model, silent=as_json, strict=strict) as view,
        _interrupts() as interrupts,
    ):
        questions = cli.ask_writes.WriteQuestions(
            yes=yes, pause=view.end, answering=interrupts.answering
        )
        with _open(session(), questions if may_write else None) as kb:
            check_question(question, kb.language_model.window)
            model_time_s = session().settings.ask_timeout or MODEL_TIME_S
            client = llm.LlmClient(settings)
            engine = agent.engine.Engine(
                kb, toolsets, max_rounds=max_rounds, model_time_s=model_time_s
            )

            def listen(happening: Happening) -> None:
                interrupts.heed(happening)
                view(happening)

            loop = engine.loop(
                engine.offering_tools(client),
                listen=listen,
                stopped=lambda: interrupts.requested,
            )
            return _with_second_chances(loop, loop.run(question), as_json)


def _may_write(command_session: Session, *, write: bool, yes: bool, read_only: bool) -> bool:
    """
    Whether the model may use tools that write.

    Raises:
        click.UsageError: The options contradict each other.
    """
    if write and read_only:
        raise click.UsageError("--write and --read-only exclude each other.")
    may_write = (write or command_session.settings.ask_write) and not read_only
    if yes and not may_write:
        raise click.UsageError("--yes agrees to writes, which only --write allows.")
    return may_write


def _open(command_session: Session, confirm: Confirm | None) -> KnowledgeBase:
    """Open the knowledge base; if ``confirm`` is None, the tools may only read."""
    if command_session.settings.vault is not None and is_missing(command_session.settings.db):
        command_session.open(
            create=True
        ).close()  # an empty one is enough: the notes tools read the disk
    return command_session.open(
        write=confirm is not None or command_session.remembers(),
        ask_server=True,
        read_only_files=confirm is None,
        confirm_writes=confirm,
    )


def questions_from(words: tuple[str, ...]) -> Iterator[str]:
    """
    The questions of a command line: its words, all of stdin for ``-``, or without words each line
    that a pipe has, as soon as it is asked for.

    Raises:
        click.UsageError: There is none.
    """
    if words:
        text = sys.stdin.read() if words == ("-",) else " ".join(words)
        lines = iter([text])
    elif sys.stdin.isatty():
        raise click.UsageError("Give a question, or a line for each on stdin.")
    else:
        lines = iter(sys.stdin)
    questions = (text for line in lines if (text := line.strip()))
    first = next(questions, None)
    if first is None:
        raise click.UsageError("The question is empty.")
    return iter([first]) if words else _one_after_another(first, questions)


def _one_after_another(first: str, others: Iterator[str]) -> Iterator[str]:
    """Questions of a pipe, each shown before it is answered, and an empty line between answers."""
    for number, question in enumerate(itertools.chain([first], others)):
        if number:
            print_text("\n")
        note(f"> {question}")
        yield question


def _with_second_chances(loop: ExecutionLoop, result: LoopResult, as_json: bool) -> LoopResult:
    """
    Resume a run that ended with a transient error, as often as the user at the terminal agrees.

    Otherwise the work of the rounds before the error would be lost.
    """
    is_interactive = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    while is_interactive and isinstance(result.error, TransientInferenceError):
        note(f"qmd: {result.error}", style="warning")
        if not confirmed("Try again?", default=True):
            break
        result = loop.resume(result)
    return result


def _write_run_as_json(question: str, model: str, mode: ChatMode, result: LoopResult) -> None:
    error = result.error
    error_object = (
        None if error is None else {"code": error.code, "message": str(error), "hint": error.hint}
    )
    write_json(
        {
            "question": question,
            "model": model,
            "mode": mode,
            **result.as_json(),
            "error": error_object,
        }
    )


def _used_tools(result: LoopResult) -> str:
    tools = [execution.call.tool for execution in result.tool_executions]
    return f"Tools used by then: {', '.join(tools)}." if tools else "No tool was used by then."


class _Interrupts:
    """
    Handles Ctrl-C: a call to the model ends at once, a tool may finish first.

    A second Ctrl-C ends a tool too.
    """

    def __init__(self) -> None:
        self.requested = False
        self._in_tool = False

    def heed(self, happening: Happening) -> None:
        if isinstance(happening, (agent.loop.ToolStarted, agent.loop.ToolExecution)):
            self._in_tool = isinstance(happening, agent.loop.ToolStarted)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """
        Let Ctrl-C end a tool at once while it waits for the user's answer.

        The tool has not written anything yet.
        """
        in_tool, self._in_tool = self._in_tool, False
        try:
            yield
        finally:
            self._in_tool = in_tool

    def handle(self, signal_number: int, frame: FrameType | None) -> None:
        tool_may_finish = self._in_tool and not self.requested
        self.requested = True
        if not tool_may_finish:
            raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    previous_handler = signal.signal(signal.SIGINT, interrupts.handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous_handler)
