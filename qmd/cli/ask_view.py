"""
Shows a turn of the agent to the user.

The answer goes to stdout: to a terminal piece by piece as it arrives, to a file or pipe only
when it is complete. Tool calls go to stderr: to a terminal as cards, elsewhere as lines. Raw
control characters in the text of a model or a document never reach a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from qmd.agent.citations import CheckedAnswer, format_citation, marked_answer
from qmd.agent.consents import shortened
from qmd.cli import terminal
from qmd.errors import WriteDeclinedError
from qmd.system import clock
from qmd.values.chats import ChatEvent
from qmd.values.proposed import Confirm, Proposed

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.status import Status

    from qmd.agent.chat import AgentTurn

_MAX_CARD_WIDTH = 100
_LINES, _CHARS = 8, 600  # at most, for a value or a result in a card
_LINE_CHARS = 160  # at most, for a value or a result in a line


class TurnScreen:
    """
    Shows the events of turns.

    Args:
        model: The name of the model.
        strict: Mark the sentences of the answer that no citation supports.
    """

    def __init__(self, model: str, *, strict: bool = False) -> None:
        self._model = terminal.one_line(model)
        self._strict = strict
        self._tools = _Cards() if sys.stderr.isatty() else _Lines()
        self._live = sys.stdout.isatty()
        self._started: dict[object, Mapping[str, Any]] = {}  # call → its first event
        self._wrapping = terminal.Wrapping()
        self._words = ""  # of the present answer, which a terminal shows already
        self._line_open = False  # they end in the middle of a line

    def show(self, event: ChatEvent) -> None:
        data: Mapping[str, Any] = event.data
        match event.kind:
            case "asking":
                self._words = ""
                number = f" (round {data['round']})" if data["round"] > 1 else ""
                self._tools.wait(f"asking {self._model}{number}")
            case "text":
                self._write(data["text"])
            case "discard":
                self.end()
                lost = " What it has said so far is void." if self._live and self._words else ""
                pause = f"{data['pause_s']:.0f} s" if data["pause_s"] >= 1 else "a moment"
                why = data["reason"].rstrip(".")
                terminal.note(f"qmd: {why}. Trying again in {pause}.{lost}", style="warning")
                self._words = ""
                self._tools.wait(f"waiting for {self._model}")
            case "tool_started":
                self._end_words()
                self._started[data["call"]] = data
                self._tools.wait(f"{terminal.one_line(data['tool'])} …")
            case "tool_finished":
                self._tools.idle()
                self._tools.show({**self._started.pop(data["call"], {}), **data})
            case "bad_block":
                self._end_words()
                terminal.note(f"A tool call that cannot be read: {data['error']}", style="warning")
            case "answer" | "error" | "ended":
                self.end()

    def show_answer(self, turn: AgentTurn) -> None:
        """The answer of a turn that is done, with what the check of its citations found."""
        checked = turn.result.checked if turn.result is not None else CheckedAnswer()
        if not self._live:
            terminal.write_text(marked_answer(turn.answer, checked, strict=self._strict) + "\n")
            sys.stdout.flush()
            return
        pages: dict[str, None] = {}
        for citation in checked.citations:
            if citation.status == "not_found":
                place = format_citation(citation.file, citation.from_line, citation.to_line)
                terminal.note(
                    f"Not found in the source: {place}: {citation.reason}", style="warning"
                )
            elif citation.place is not None:
                place = format_citation(citation.file, citation.from_line, citation.to_line)
                pages.setdefault(f"{place} is {terminal.one_line(citation.place)}")
        for page in pages:
            terminal.note(page)
        if self._strict:
            for sentence in checked.unsupported:
                terminal.note(
                    f"Without support: {terminal.one_line(sentence.text)}", style="warning"
                )

    def end(self) -> None:
        """Stop the spinner, and move the cursor to the beginning of a line."""
        self._tools.idle()
        if self._line_open:
            sys.stdout.write(self._wrapping.end() + "\n")
            sys.stdout.flush()
            self._wrapping = terminal.Wrapping()
            self._line_open = False

    def _end_words(self) -> None:
        """What the model said before it called tools; a terminal shows it already."""
        self.end()
        if self._words and not self._live:
            sys.stderr.write(terminal.harmless(self._words.rstrip()) + "\n")
        self._words = ""

    def _write(self, text: str) -> None:
        """Print the next piece of the answer, without the blank lines before its first text."""
        text = text if self._words else text.lstrip()
        self._words += text
        if not (text and self._live):
            return
        self._tools.idle()
        sys.stdout.write(self._wrapping.feed(terminal.harmless(text)))
        sys.stdout.flush()
        self._line_open = not text.endswith("\n")


class _Lines:
    """Prints one line on stderr for each tool call."""

    def wait(self, activity: str) -> None:
        pass

    def idle(self) -> None:
        pass

    def show(self, call: Mapping[str, Any]) -> None:
        params = ", ".join(f"{key}={_value(value)}" for key, value in call["params"].items())
        outcome = "ok" if call["success"] else "error"
        result = _shortened(" ".join(call["result"].split()), _LINE_CHARS)
        at, duration = _when(call)
        terminal.note(f"{call['tool']}({params}) {outcome} at {at} in {duration}: {result}")


def _when(call: Mapping[str, Any]) -> tuple[str, str]:
    """The local time of day when a call began, and how long it took."""
    return f"{clock.local(call['at']):%H:%M:%S}", f"{call['duration_ms'] / 1000:.2f} s"


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _shortened(text, _LINE_CHARS)


class _Cards:
    """Prints a card on the terminal for each tool call, and shows what the run waits for."""

    def __init__(self) -> None:
        self._console: Console = Console(
            file=sys.stderr,
            highlight=False,
            markup=False,
            color_system="auto" if terminal.use_color(sys.stderr) else None,
        )
        self._status: Status | None = None

    def wait(self, activity: str) -> None:
        self.idle()
        if self._console.is_dumb_terminal:
            return
        self._status = self._console.status(Text(activity, style="dim"), spinner="dots")
        self._status.start()

    def idle(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, call: Mapping[str, Any]) -> None:
        self._console.print(card(call), width=min(self._console.width, _MAX_CARD_WIDTH))


def card(call: Mapping[str, Any]) -> RenderableType:
    """
    A card for a tool call: name, parameters, result, time and duration.

    ``call``: The data of its events ``tool_started`` and ``tool_finished``.
    """
    success = call["success"]
    colour = "green" if success else "red"
    shown = _excerpt(call["result"], call["characters"])
    result = Text(shown or "(nothing)", style="" if success else "red")
    parameters = _parameters(call["params"])
    body = Group(*([parameters, Rule(style="dim")] if parameters else []), result)
    title = Text(f"{'✅' if success else '❌'} {terminal.one_line(call['tool'])}", style="bold")
    when = Text(" · ".join(_when(call)), style="dim")
    return Panel(
        body,
        title=title,
        title_align="left",
        subtitle=when,
        subtitle_align="right",
        border_style=colour,
    )


def _parameters(params: Mapping[str, Any]) -> Any:
    if not params:
        return None
    table = Table.grid(padding=(0, 1))
    for name, value in params.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        table.add_row(Text(terminal.one_line(name), style="cyan"), Text(_excerpt(text, len(text))))
    return table


def _excerpt(text: str, characters: int) -> str:
    """
    The beginning of a text, and a line that says how many more characters there are.

    Args:
        characters: How many the whole text has.
    """
    lines = text.strip("\r\n")[:_CHARS].splitlines()[:_LINES]
    shown = "\n".join(lines)
    more = characters - (len(text) - len(text.strip("\r\n"))) - len(shown)
    end = f"\n… {more:,} more characters" if more > len(lines) else ""
    return terminal.harmless(shown) + end


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


# --- questions about writes -------------------------------------------------------------
# The person sees exactly the bytes that will be written, which the writer passes in a proposal.
# Control characters and invisible characters are shown as escapes.


def consent(*, yes: bool) -> Confirm | None:
    """
    Who agrees to the writes of a model: with ``yes`` each is agreed to, and without a terminal
    each is declined; None to ask the person by `is_agreed`.
    """

    def declined(proposed: Proposed) -> bool:
        raise WriteDeclinedError(
            "Nothing was written: a person has to agree to each write, and there is no "
            "terminal to ask on.",
            hint="The person can start it with --yes to agree to all writes beforehand.",
        )

    if yes:
        return lambda _: True
    return None if sys.stdin.isatty() and sys.stderr.isatty() else declined


def is_agreed(headline: str, lines: list[str]) -> bool:
    """
    Show a change and ask whether to write it; the end of the input declines it.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    shown, left_out = shortened(lines)
    _print([headline, *shown])
    question = "Write this?"
    if left_out:
        question = f"Write this, with {left_out} that are not shown (a shows all)?"
    while (answer := _choice(question, more=bool(left_out))) == "a":
        _print(lines)
        question, left_out = "Write this?", ""
    return answer == "y"


def _choice(question: str, *, more: bool) -> str:
    """Ask until the answer is valid, and return "y", "n" or "a" (only with ``more``)."""
    choices = {"y": "y", "yes": "y", "n": "n", "no": "n", "": "n"}
    if more:
        choices |= {"a": "a", "all": "a"}
    try:
        return terminal.choose(question, choices, shown="y/N/a" if more else "y/N")
    except click.Abort as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return "n"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1])
        sys.stderr.write((terminal.paint(line, style, sys.stderr) if style else line) + "\n")
    sys.stderr.flush()
