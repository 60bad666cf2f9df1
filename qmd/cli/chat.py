"""``qmd chat`` holds conversations with the agent, and lists, shows and exports those kept."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from qmd import agent, cli
from qmd.cli import complete
from qmd.cli.ask import check_writes, introduce, model_options, questions_from, strict_option
from qmd.cli.command import Group, json_option, setting_option
from qmd.cli.listings import limit_options
from qmd.cli.serve import tool_options
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, one_line, write, write_json, write_text
from qmd.files.chats import chat_as_note
from qmd.operations.chats import MOST, resolve
from qmd.system import clock
from qmd.system.user_dirs import is_missing, is_writable
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn
    from qmd.kb import KnowledgeBase
    from qmd.values.chats import Chat, ChatMode

#: The options that the help shows first.
USUAL = (
    *("--continue", "--chat", "--write", "--read-only", "--llm-url", "--llm-model", "--strict"),
    *("--vault", "--json"),
)


_COMMANDS = ("ask", "list", "search", "show", "rename", "delete", "export")


@click.group(
    "chat",
    cls=Group,
    default="ask",
    operations="chat",
    sections=lambda: {"Commands": _COMMANDS},
    usual=USUAL,
    examples=(
        "qmd chat                                  # a conversation at the terminal",
        "qmd chat 'what did we decide about backups?'",
        "qmd chat --continue --json 'and why?' | jq -r .answer",
        "qmd chat search backups",
    ),
)
def chat() -> None:
    """
    Hold a conversation with a language model that reads your notes.

    Words that are none of the commands are a question: 'qmd chat ask' has the options.
    """


@chat.subcommand(
    "ask",
    usual=USUAL,
    examples=(
        "qmd chat ask 'what did we decide about backups?'",
        "qmd chat ask --continue 'and why?'",
        "qmd chat ask --write --chat 3f9a",
    ),
)
@click.argument("question", nargs=-1, metavar="[QUESTION]...")
@click.option("--continue", "goes_on", is_flag=True, help="Go on with the latest conversation.")
@click.option(
    "--chat",
    "chat_id",
    metavar="ID",
    help="Go on with this conversation.",
    shell_complete=complete.chats,
)
@click.option("--write", "may_write", is_flag=True, help="Begin in mode write: it may change notes,"
              " after asking you each time.")  # fmt: skip
@click.option("--yes", is_flag=True, help="With --write: agree to every write in advance.")
@click.option("--read-only", is_flag=True, help="Refuse mode write.")
@model_options
@setting_option("llm_window", click.IntRange(1))
@strict_option
@tool_options
@json_option
def ask(
    question: tuple[str, ...],
    goes_on: bool,
    chat_id: str | None,
    may_write: bool,
    yes: bool,
    read_only: bool,
    strict: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """
    Ask a question, and further ones at a terminal.

    The conversation is kept in the database. At a terminal, /help lists what else can be typed;
    Ctrl-C stops an answer, Ctrl-D ends. QUESTION '-' is all of stdin; without one, each line of a
    pipe is a question of the same conversation.
    """
    _check_chat(goes_on, chat_id)
    check_writes(asked_for=may_write, allowed=may_write, yes=yes, read_only=read_only)
    is_interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    has_question = any(word.strip() for word in question)
    questions = questions_from(question) if has_question or not is_interactive else iter([""])
    command_session = session()

    consent = cli.ask_view.consent(yes=yes)
    with (
        _open(command_session, read_only=read_only) as kb,
        agent.chat.Chats(kb, may_write=not read_only, confirm=consent, **limits) as chats,
    ):
        model = "the model"
        if chats.has_model:
            server = kb.backend_settings.server()
            server.require_key()
            model = server.model
        mode: ChatMode = "write" if may_write else "read"
        talk = cli.chat_talk.Talk(
            kb, chats, model, _current(kb, goes_on, chat_id), mode=mode, yes=yes, strict=strict
        )
        if chats.has_model and not (is_interactive or as_json):
            introduce(model, mode, agreed=yes)
        for text in questions:
            if is_interactive:
                talk.hold(text)
            else:
                talk.ask_once(text, partial(_as_json, model=model) if as_json else None)


def _as_json(turn: AgentTurn, *, model: str) -> dict[str, object]:
    reply = turn.reply()
    tools = [dict(event.data) for event in reply.tools]
    return {"question": turn.question, "model": model, **to_wire(reply), "tools": tools}


def _check_chat(goes_on: bool, chat_id: str | None) -> None:
    """Raises click.UsageError: The options name two conversations."""
    if goes_on and chat_id:
        raise click.UsageError("--continue and --chat exclude each other.")


def _open(command_session: Session, *, read_only: bool) -> KnowledgeBase:
    database = command_session.settings.db
    may_write = is_missing(database) or is_writable(database)
    if not may_write:
        note("The database can only be read: this conversation is not kept.", style="warning")
    return command_session.open(
        write=may_write, ask_server=True, read_only_files=read_only or not may_write
    )


def _current(kb: KnowledgeBase, goes_on: bool, chat_id: str | None) -> str | None:
    """The conversation to go on with; None for a new one. Raises ChatNotFoundError."""
    if chat_id is not None:
        return resolve(kb, chat_id).id
    if not goes_on:
        return None
    latest = kb.chats(limit=1).chats
    if not latest:
        raise click.UsageError("There is no conversation yet to go on with.")
    return latest[0].id


def _print_list(query: str, limit: int | None, offset: int, as_json: bool) -> None:
    with session().open() as kb:
        page = kb.chats(query, limit=limit or MOST, offset=offset)
    if as_json:
        write_json(page)
        return
    for each in page.chats:
        turns = "1 question" if each.turns == 1 else f"{each.turns} questions"
        write(f"{each.id}  {clock.minute(each.updated)}  {one_line(each.name)} ({turns})\n")
    more = page.total - offset - len(page.chats)
    if more > 0:
        note(f"… {more:,} more: --all shows them")
    elif not page.chats:
        note("No conversation." if query else "No conversation yet: qmd chat 'QUESTION'")


_limit = limit_options(MOST)
_offset = click.option("--offset", type=click.IntRange(0), default=0, metavar="N",
                       help="Leave out the first N.")  # fmt: skip


@chat.subcommand("list", examples=("qmd chat list", "qmd chat list --json"))
@_limit
@_offset
@json_option
def list_(limit: int | None, offset: int, as_json: bool) -> None:
    """List the conversations, the latest first."""
    _print_list("", limit, offset, as_json)


@chat.subcommand("search", examples=("qmd chat search backups", "qmd chat search 备份 部署"))
@click.argument("text", nargs=-1, required=True)
@_limit
@_offset
@json_option
def search(text: tuple[str, ...], limit: int | None, offset: int, as_json: bool) -> None:
    """List conversations with all these words.

    They may stand in the name, in questions and in answers.
    """
    _print_list(" ".join(text), limit, offset, as_json)


@chat.subcommand(
    "show",
    render=lambda conversation: write_text(chat_as_note(conversation)),
    examples=("qmd chat show 3f9a", "qmd chat show 3f9a --json"),
)
@click.argument("chat_id", metavar="ID", shell_complete=complete.chats)
def show(chat_id: str) -> Chat:
    """Show a conversation; ID may be the beginning of its id."""
    with session().open() as kb:
        return kb.chat(resolve(kb, chat_id).id)
