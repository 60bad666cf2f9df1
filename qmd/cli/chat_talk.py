"""A conversation at the terminal: the prompt, its commands, and each turn as it happens."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import click

from qmd.cli.ask import introduce, mode_in_words
from qmd.cli.ask_view import RunView, view_of_a_run
from qmd.cli.ask_writes import WriteQuestions
from qmd.cli.terminal import confirmed, note, one_line, write_json, write_text
from qmd.errors import QmdError, TransientInferenceError
from qmd.operations.chats import resolve

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn, Chats
    from qmd.kb import KnowledgeBase
    from qmd.values.chats import ChatMode

_HELP = """\
/mode [read|write]  say or change whether the agent may write, after asking you
/new                begin another conversation
/list               the latest conversations
/open ID            go on with one of them
/retry              resume a question that has no answer
/name TEXT          rename this conversation
/export NOTE        write this conversation into a new note
/quit               end, as Ctrl-D does; Ctrl-C stops an answer
\"\"\"               begin and end a question of several lines"""


class Talk:
    """
    One person's conversation.

    Args:
        chat: The conversation to go on with; None for a new one.
        yes: Agree to every write.
        strict: Mark the sentences of answers that no citation supports.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        chats: Chats,
        chat: str | None,
        *,
        mode: ChatMode,
        yes: bool,
        strict: bool = False,
    ) -> None:
        self._kb = kb
        self._chats = chats
        self._chat = chat
        self._mode: ChatMode = mode
        self._yes = yes
        self._strict = strict
        self._model = chats.model_name or "the model"
        self._is_over = False

    # -- one question --------------------------------------------------------------------

    def ask_once(self, question: str, *, as_json: bool) -> None:
        """
        Ask, and print the answer.

        Raises:
            QmdError: An error ended the turn.
            KeyboardInterrupt: The user did.
        """
        turn = self._turn(
            lambda view: self._chats.start(question, self._chat, mode=self._mode, watch=view),
            silent=as_json,
        )
        self._chat = turn.chat
        if as_json:
            write_json(_as_json(turn, self._model))
        if turn.error is not None:
            raise turn.error
        if turn.status == "stopped":
            raise KeyboardInterrupt
        self._tell(turn)

    # -- many questions ------------------------------------------------------------------

    def hold(self, question: str) -> None:
        """Ask, if there is a question, and then whatever the person types, until the end."""
        import readline  # noqa: F401 - gives `input` its history and its keys

        introduce(self._model, self._mode, agreed=self._yes, commands=" · /help")
        while not self._is_over:
            text = question or self._read()
            question = ""
            if text:
                self._guarded(partial(self._command if text.startswith("/") else self._ask, text))

    def _ask(self, question: str) -> None:
        turn = self._turn(
            lambda view: self._chats.start(question, self._chat, mode=self._mode, watch=view)
        )
        self._chat = turn.chat
        self._after(turn)

    def _after(self, turn: AgentTurn) -> None:
        while isinstance(turn.error, TransientInferenceError):
            note(f"qmd: {turn.error}", style="warning")
            if not confirmed("Try again?", default=True):
                return
            turn = self._turn(partial(self._resume, turn.chat))
        if turn.error is not None:
            note(f"qmd: error: {turn.error.with_hint}", style="error")
        elif turn.status == "stopped":
            note("Stopped. /retry goes on.", style="warning")
        self._tell(turn)

    def _tell(self, turn: AgentTurn) -> None:
        if turn.status == "limit":
            note("The limit of rounds or time is reached. Ask for less at once.", style="warning")

    def _turn(self, start: Callable[[RunView], AgentTurn], *, silent: bool = False) -> AgentTurn:
        """Start a turn and show it until it has ended. Ctrl-C stops it."""
        with view_of_a_run(self._model, silent=silent, strict=self._strict) as view:
            questions = WriteQuestions(yes=self._yes, pause=view.end, answering=nullcontext)
            turn = start(view)
            try:
                for event in turn.events():
                    if event.kind == "question":
                        question = str(event.data["question"])
                        self._answer(turn, question, str(event.data["heading"]), questions)
            except KeyboardInterrupt:
                turn.stop()
                turn.wait()
            return turn

    @staticmethod
    def _answer(turn: AgentTurn, question: str, headline: str, questions: WriteQuestions) -> None:
        if turn.questions is None:
            return
        try:
            agreed = questions.ask(headline, turn.questions.lines(question))
            turn.answer(question, agreed)
        except QmdError as error:  # it has waited too long
            note(f"qmd: {error}", style="warning")

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do something; an error is shown, and the conversation goes on."""
        try:
            work()
        except QmdError as error:
            note(f"qmd: error: {error.with_hint}", style="error")
        except (KeyboardInterrupt, click.Abort):
            note("")

    def _read(self) -> str:
        """What the person types: one line, or several between lines of three quotation marks."""
        try:
            line = input("> ").strip()
            if not line.startswith('"""'):
                return line
            lines = [line[3:]]
            while not lines[-1].rstrip().endswith('"""'):
                lines.append(input("… "))
            lines[-1] = lines[-1].rstrip()[:-3]
            return "\n".join(lines).strip()
        except KeyboardInterrupt:
            note("")
            note("/quit or Ctrl-D ends.")
            return ""
        except EOFError:
            self._is_over = True
            sys.stdout.write("\n")
            return ""

    # -- commands ------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        name, _, rest = text[1:].partition(" ")
        commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: note_lines(_HELP),
            "mode": self._set_mode,
            "new": self._new,
            "list": self._list,
            "open": self._open,
            "retry": self._retry,
            "name": self._rename,
            "export": self._export,
            "quit": self._quit,
            "exit": self._quit,
        }
        if name not in commands:
            note(f"No such command: /{one_line(name)}. /help lists them.", style="warning")
            return
        commands[name](rest.strip())

    def _set_mode(self, word: str) -> None:
        if word == "write" and not self._chats.may_write:
            note("Nothing may be written here.", style="warning")
        elif word == "write":
            self._mode = "write"
        elif word == "read":
            self._mode = "read"
        elif word:
            note("/mode read or /mode write", style="warning")
        words = mode_in_words(self._mode, agreed=self._yes)
        note(f"{words[0].upper()}{words[1:]}.")

    def _new(self, _: str) -> None:
        self._chat = None
        note("A new conversation.")

    def _list(self, _: str) -> None:
        for each in self._kb.chats(limit=10).chats:
            note(f"{each.id}  {one_line(each.name)}")

    def _open(self, beginning: str) -> None:
        info = resolve(self._kb, beginning)
        self._chat = info.id
        note(f"{one_line(info.name)} ({info.turns})")
        for turn in self._kb.chat(info.id).turns[-1:]:
            note(f"> {one_line(turn.question[:200])}")
            write_text(turn.answer + "\n")

    def _retry(self, _: str) -> None:
        if self._chat is None:
            note("There is nothing to resume.", style="warning")
            return
        self._after(self._turn(partial(self._resume, self._chat)))

    def _resume(self, chat: str, view: RunView) -> AgentTurn:
        return self._chats.retry(chat, watch=view)

    def _rename(self, name: str) -> None:
        if self._chat is not None:
            note(f"Renamed to {one_line(self._kb.rename_chat(self._chat, name).name)}")

    def _export(self, path: str) -> None:
        if self._chat is not None and path:
            note(f"Wrote {one_line(self._kb.export_chat(self._chat, path).path)}")

    def _quit(self, _: str) -> None:
        self._is_over = True


def note_lines(text: str) -> None:
    for line in text.splitlines():
        note(line)


def _as_json(turn: AgentTurn, model: str) -> dict[str, object]:
    events = turn.log.all()
    answer = next((event.data for event in events if event.kind == "answer"), {})
    error = next((event.data for event in events if event.kind == "error"), None)
    return {
        "question": turn.question,
        "model": model,
        "chat": turn.chat,
        "name": turn.name,
        "number": turn.number,
        "status": turn.status,
        "kept": turn.is_kept,
        "answer": turn.text(),
        "citations": answer.get("citations", []),
        "unsupported": answer.get("unsupported", []),
        "tools": [
            dict(event.data) for event in events if event.kind in ("tool_started", "tool_finished")
        ],
        "error": None if error is None else dict(error),
    }
