"""A conversation at the terminal: the prompt, its commands, and each turn as it happens."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import click

from qmd.cli.ask import introduce, mode_in_words
from qmd.cli.ask_view import TurnScreen, is_agreed
from qmd.cli.session import session
from qmd.cli.terminal import confirmed, note, one_line, write_json, write_text
from qmd.errors import QmdError, TransientInferenceError
from qmd.operations.chats import resolve

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn, Chats
    from qmd.kb import KnowledgeBase
    from qmd.values.chats import ChatEvent, ChatMode

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
        model: The name of the model.
        chat: The conversation to go on with; None for a new one.
        yes: The person has agreed to every write.
        strict: Mark the sentences of answers that no citation supports.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        chats: Chats,
        model: str,
        chat: str | None = None,
        *,
        mode: ChatMode,
        yes: bool,
        strict: bool = False,
    ) -> None:
        self._kb = kb
        self._chats = chats
        self._model = model
        self.chat = chat
        self._mode: ChatMode = mode
        self._yes = yes
        self._strict = strict
        self._is_over = False

    # -- one question --------------------------------------------------------------------

    def ask_once(
        self, question: str, as_json: Callable[[AgentTurn], dict[str, object]] | None
    ) -> None:
        """
        Ask, and print the answer.

        Args:
            as_json: What is printed at the end instead; None to show what happens.

        Raises:
            QmdError: An error ended the turn.
            KeyboardInterrupt: The user did.
        """
        turn = self._ask(question, silent=as_json is not None)
        if as_json is not None:
            write_json(as_json(turn))
        if turn.error is not None:
            raise turn.error
        if turn.status == "stopped":
            session().interrupted = _used_tools(turn)
            raise KeyboardInterrupt
        self._warn(turn)

    def _ask(self, question: str, *, silent: bool = False) -> AgentTurn:
        turn = self._chats.start(question, self.chat, mode=self._mode)
        self.chat = turn.chat
        return self._answered(turn, silent=silent)

    def _answered(self, turn: AgentTurn, *, silent: bool = False) -> AgentTurn:
        """
        Show a turn until it has ended, and resume it after a transient error, as often as the
        person at the terminal agrees: else the work of the rounds before would be lost.
        """
        self._follow(turn, silent)
        may_ask = sys.stdin.isatty() and sys.stderr.isatty() and not silent
        while may_ask and isinstance(turn.error, TransientInferenceError):
            note(f"qmd: {turn.error}", style="warning")
            if not confirmed("Try again?", default=True):
                break
            turn = self._chats.retry(turn.chat)
            self._follow(turn, silent)
        return turn

    def _follow(self, turn: AgentTurn, silent: bool) -> None:
        """Show what happens in a turn. Ctrl-C stops it; a second one does not wait for its end."""
        view = TurnScreen(self._model, strict=self._strict)
        try:
            for event in islice(turn.log.events(), turn.repeated, None):
                if event.kind == "question":
                    view.end()
                    _ask_for_consent(turn, event)
                elif not silent:
                    view.show(event)
        except KeyboardInterrupt:
            view.end()
            turn.stop()
            turn.wait()
        if turn.status == "done" and not silent:
            view.show_answer(turn)

    def _warn(self, turn: AgentTurn) -> None:
        if turn.warning is not None:
            note(f"qmd: {turn.warning}", style="warning")

    # -- many questions ------------------------------------------------------------------

    def hold(self, question: str) -> None:
        """Ask, if there is a question, and then whatever the person types, until the end."""
        import readline  # noqa: F401 - gives `input` its history and its keys

        introduce(self._model, self._mode, agreed=self._yes, commands=" · /help")
        while not self._is_over:
            text = question or self._read()
            question = ""
            if text:
                self._guarded(partial(self._command if text.startswith("/") else self._say, text))

    def _say(self, question: str) -> None:
        self._tell_end(self._ask(question))

    def _tell_end(self, turn: AgentTurn) -> None:
        if turn.error is not None:
            note(f"qmd: error: {turn.error.with_hint}", style="error")
        elif turn.status == "stopped":
            note("Stopped. /retry goes on.", style="warning")
        self._warn(turn)

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
        self.chat = None
        note("A new conversation.")

    def _list(self, _: str) -> None:
        for each in self._kb.chats(limit=10).chats:
            note(f"{each.id}  {one_line(each.name)}")

    def _open(self, beginning: str) -> None:
        info = resolve(self._kb, beginning)
        self.chat = info.id
        note(f"{one_line(info.name)} ({info.turns})")
        for turn in self._kb.chat(info.id).turns[-1:]:
            note(f"> {one_line(turn.question[:200])}")
            write_text(turn.answer + "\n")

    def _retry(self, _: str) -> None:
        if self.chat is None:
            note("There is nothing to resume.", style="warning")
            return
        self._tell_end(self._answered(self._chats.retry(self.chat)))

    def _rename(self, name: str) -> None:
        if self.chat is not None:
            note(f"Renamed to {one_line(self._kb.rename_chat(self.chat, name).name)}")

    def _export(self, path: str) -> None:
        if self.chat is not None and path:
            note(f"Wrote {one_line(self._kb.export_chat(self.chat, path).path)}")

    def _quit(self, _: str) -> None:
        self._is_over = True


def note_lines(text: str) -> None:
    for line in text.splitlines():
        note(line)


def _ask_for_consent(turn: AgentTurn, question: ChatEvent) -> None:
    """Ask the person about a write. Raises KeyboardInterrupt: Ctrl-C, which stops the turn."""
    consent_id = str(question.data["question"])
    if turn.consents is None:
        return
    try:
        agreed = is_agreed(str(question.data["heading"]), turn.consents.lines(consent_id))
        turn.decide(consent_id, agreed)
    except QmdError as error:  # it has waited too long
        note(f"qmd: {error}", style="warning")


def _used_tools(turn: AgentTurn) -> str:
    tools = [str(each.data["tool"]) for each in turn.log.all() if each.kind == "tool_started"]
    return f"Tools used by then: {', '.join(tools)}." if tools else "No tool was used by then."
