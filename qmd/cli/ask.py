"""``qmd ask`` puts a question to a language model, which may use the tools of the server."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from qmd import agent, cli
from qmd.cli.command import command, json_option, setting_option, together
from qmd.cli.serve import tool_options
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, one_line
from qmd.cli.terminal import write as print_text
from qmd.config import SETTINGS
from qmd.inference import llm
from qmd.system.user_dirs import is_missing
from qmd.values.chats import MAX_ROUNDS, ChatMode

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn
    from qmd.kb import KnowledgeBase

#: The person at the terminal may take any time: nobody else waits for the turn.
_NO_LIMIT_S = 7 * 24 * 3600.0


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


model_options = together(
    setting_option("llm_url"),
    setting_option("llm_model"),
    setting_option("llm_tool_calls"),
    setting_option("llm_timeout", click.FloatRange(0, min_open=True)),
    setting_option("ask_timeout", click.FloatRange(0, min_open=True)),
    setting_option("allow_insecure_key"),
    click.option("--max-rounds", type=click.IntRange(1, MAX_ROUNDS), default=MAX_ROUNDS,
                 show_default=True, metavar="N", help="Ask the model at most N times."),
)  # fmt: skip


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
@click.option("--write", is_flag=True, help=SETTINGS["ask_write"].help)
@click.option("--yes", is_flag=True, help="With --write: agree to every write in advance.")
@click.option("--read-only", is_flag=True, help="Only read: the default.")
@strict_option
@tool_options
@json_option
def ask(
    question: tuple[str, ...],
    write: bool,
    yes: bool,
    read_only: bool,
    strict: bool,
    as_json: bool,
    **limits: Any,
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
    may_write = (write or command_session.settings.ask_write) and not read_only
    check_writes(asked_for=write, allowed=may_write, yes=yes, read_only=read_only)
    questions = questions_from(question)
    settings = command_session.llm()
    settings.require_key()
    mode: ChatMode = "write" if may_write else "read"
    if not as_json:
        introduce(settings.model, mode, agreed=yes)
    with (
        _open(command_session, write=may_write) as kb,
        agent.chat.Chats(
            kb,
            model=llm.LlmClient(settings),
            is_kept=False,
            turn_s=_NO_LIMIT_S,
            consent_s=_NO_LIMIT_S,
            confirm=cli.ask_view.consent(yes=yes),
            **limits,
        ) as chats,
    ):
        talk = cli.chat_talk.Talk(kb, chats, settings.model, mode=mode, yes=yes, strict=strict)
        for text in questions:
            talk.chat = None  # each question begins anew
            talk.ask_once(text, partial(_as_json, model=settings.model) if as_json else None)


def _as_json(turn: AgentTurn, *, model: str) -> dict[str, object]:
    error = turn.error
    result = turn.result or agent.loop.RunState(())
    return {
        "question": turn.question,
        "model": model,
        "mode": turn.mode,
        **result.as_json(),
        "error": None
        if error is None
        else {"code": error.code, "message": str(error), "hint": error.hint},
    }


def check_writes(*, asked_for: bool, allowed: bool, yes: bool, read_only: bool) -> None:
    """Raises click.UsageError: The options about writes contradict each other."""
    if asked_for and read_only:
        raise click.UsageError("--write and --read-only exclude each other.")
    if yes and not allowed:
        raise click.UsageError("--yes agrees to writes, which only --write allows.")


def _open(command_session: Session, *, write: bool) -> KnowledgeBase:
    """Open the knowledge base, whose files the tools may change with ``write``."""
    if command_session.settings.vault is not None and is_missing(command_session.settings.db):
        command_session.open(
            create=True
        ).close()  # an empty one is enough: the notes tools read the disk
    return command_session.open(
        write=write or command_session.remembers(), ask_server=True, read_only_files=not write
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
