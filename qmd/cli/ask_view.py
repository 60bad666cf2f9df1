"""
What the person at the terminal sees of an agent's run.

The answer goes to stdout: on a terminal as it is written, elsewhere whole, and alone. What the
tools do goes to stderr: on a terminal as cards, elsewhere as lines. Nothing that comes from a
model or a document reaches a terminal with raw control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from qmd.agent.loop import Answered, Asking, BadBlock, Happening, ToolExecution, ToolStarted
from qmd.agent.parser import Parsed, ToolCall
from qmd.cli.terminal import harmless, note, one_line, use_color, write_text
from qmd.inference.llm import Delta, Retry

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status

_OPENING = "```json:tool"
_WIDEST = 100
_LINES, _CHARS = 8, 600  # of a value or result in a card
_LINE_CHARS = 160  # of a value or result in a line


class RunView(Protocol):
    """What hears of a run and shows it."""

    def __call__(self, happening: Happening) -> None: ...

    def end(self) -> None:
        """Nothing moves any more, and the cursor is at the beginning of a line."""
        ...


@contextmanager
def view_of_a_run(model: str, *, silent: bool) -> Iterator[RunView]:
    """
    What is seen of a run while it goes on.

    Args:
        silent: Show nothing: the run is printed as JSON when it is over.
    """
    if silent:
        yield _Silent()
        return
    view = _View(model, _Cards() if sys.stderr.isatty() else _Lines())
    try:
        yield view
    finally:
        view.end()


class _Silent:
    def __call__(self, happening: Happening) -> None:
        pass

    def end(self) -> None:
        pass


class _View:
    """Shows the text of answers itself, and leaves tools and waiting to ``tools``."""

    def __init__(self, model: str, tools: _Cards | _Lines) -> None:
        self._model = one_line(model)
        self._tools = tools
        self._live = sys.stdout.isatty()
        self._answer = AnswerText()
        self._begun = False  # something of the present answer stands on the terminal
        self._open = False  # and its last line is not at its end

    def __call__(self, happening: Happening) -> None:
        if isinstance(happening, Asking):
            self._answer = AnswerText()
            self._begun = False
            self._tools.wait(f"asking {self._model}" + _again(happening.iteration))
        elif isinstance(happening, Delta):
            self._write(self._answer.feed(happening.text))
        elif isinstance(happening, Retry):
            self._tools.idle()
            self._end_line()
            lost = " What it has said so far is void." if self._begun else ""
            pause = f"{happening.pause_s:.0f} s" if happening.pause_s >= 1 else "a moment"
            why = happening.reason.rstrip(".")
            note(f"qmd: {why}. Trying again in {pause}.{lost}", style="warning")
            self._answer = AnswerText()
            self._begun = False
            self._tools.wait(f"waiting for {self._model}")
        elif isinstance(happening, Answered):
            self._answered(happening)
        elif isinstance(happening, ToolStarted):
            self._tools.wait(f"{one_line(happening.call.tool)} …")
        elif isinstance(happening, ToolExecution):
            self._tools.idle()
            self._tools.show(happening)
        elif isinstance(happening, BadBlock):
            self._tools.idle()
            self._tools.refused(happening)
        else:  # a question may follow, whether to try again
            self.end()

    def end(self) -> None:
        self._tools.idle()
        self._end_line()

    def _answered(self, answered: Answered) -> None:
        if self._live:
            self._write(self._answer.rest(answered.parsed))
            self._tools.idle()
            self._end_line()
            return
        self._tools.idle()
        text = answered.parsed.text
        if answered.final:
            write_text(text + "\n")
            sys.stdout.flush()
        elif text:
            sys.stderr.write(harmless(text) + "\n")

    def _write(self, text: str) -> None:
        """Some more of the answer; blank lines before it are left out."""
        if not self._live:
            return
        text = text if self._begun else text.lstrip()
        if not text:
            return
        self._tools.idle()
        sys.stdout.write(harmless(text))
        sys.stdout.flush()
        self._begun = True
        self._open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False


def _again(iteration: int) -> str:
    return f" (round {iteration})" if iteration > 1 else ""


class AnswerText:
    """What may be shown of an answer while it is written: not the tool calls in it."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, delta: str) -> str:
        """Takes the next piece; returns what is certain to be text."""
        self._text += delta
        held = self._text[self._shown : self._shown + 100].lstrip("`")
        if self._text.startswith("```", self._shown) and held.startswith("json:tool"):
            return ""
        end = self._text.find(_OPENING, self._shown)
        if end < 0:
            end = len(self._text) - _begun(self._text[self._shown :])
        while end > self._shown and self._text[end - 1] == "`":  # a longer fence
            end -= 1
        shown = self._text[self._shown : end]
        self._shown = end
        return shown

    def rest(self, parsed: Parsed) -> str:
        """What is still to be shown of the text, now that the whole answer is known."""
        return parsed.untrimmed[self._shown :].rstrip()


def _begun(text: str) -> int:
    """How many characters at the end may be the beginning of a tool call, or half a line end."""
    if text.endswith("\r"):
        return 1
    longest = min(len(text), len(_OPENING) - 1)
    return next((n for n in range(longest, 0, -1) if _OPENING.startswith(text[-n:])), 0)


class _Lines:
    """One line on stderr for each use of a tool."""

    def wait(self, what: str) -> None:
        pass

    def idle(self) -> None:
        pass

    def show(self, done: ToolExecution) -> None:
        params = ", ".join(f"{key}={_value(value)}" for key, value in done.call.params.items())
        outcome = "ok" if done.result.success else "error"
        result = _shortened(" ".join(done.result.text.split()), _LINE_CHARS)
        note(f"{done.call.tool}({params}) {outcome} in {done.duration_s:.2f} s: {result}")

    def refused(self, block: BadBlock) -> None:
        note(f"A tool call that cannot be read: {block.problem.error}", style="warning")


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _shortened(text, _LINE_CHARS)


class _Cards:
    """A card on the terminal for each use of a tool, and a word of what is waited for."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Console = Console(
            file=sys.stderr,
            highlight=False,
            markup=False,
            color_system="auto" if use_color(sys.stderr) else None,
        )
        self._status: Status | None = None

    def wait(self, what: str) -> None:
        self.idle()
        if self._console.is_dumb_terminal:
            return
        from rich.text import Text

        self._status = self._console.status(Text(what, style="dim"), spinner="dots")
        self._status.start()

    def idle(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, done: ToolExecution) -> None:
        self._print(card(done))

    def refused(self, block: BadBlock) -> None:
        note(f"A tool call that cannot be read: {block.problem.error}", style="warning")

    def _print(self, what: RenderableType) -> None:
        self._console.print(what, width=min(self._console.width, _WIDEST))


def card(done: ToolExecution) -> RenderableType:
    """A use of a tool: its name, its parameters, its result and the time it took."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.rule import Rule
    from rich.text import Text

    good = done.result.success
    colour = "green" if good else "red"
    result = Text(_excerpt(done.result.text) or "(nothing)", style="" if good else "red")
    parameters = _parameters(done.call)
    body = Group(*([parameters, Rule(style="dim")] if parameters else []), result)
    title = Text(f"{'✅' if good else '❌'} {one_line(done.call.tool)}", style="bold")
    took = Text(f"{done.duration_s:.2f} s", style="dim")
    return Panel(
        body,
        title=title,
        title_align="left",
        subtitle=took,
        subtitle_align="right",
        border_style=colour,
    )


def _parameters(call: ToolCall) -> Any:
    from rich.table import Table
    from rich.text import Text

    if not call.params:
        return None
    table = Table.grid(padding=(0, 1))
    for name, value in _listed(call.params).items():
        table.add_row(Text(one_line(name), style="cyan"), Text(value))
    return table


def _listed(params: Mapping[str, Any]) -> dict[str, str]:
    """Text as it is, anything else as JSON."""
    return {
        name: _excerpt(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in params.items()
    }


def _excerpt(text: str) -> str:
    """The beginning of a text for a card; it says how much more there is."""
    lines = text.strip("\r\n")[:_CHARS].splitlines()[:_LINES]
    shown = "\n".join(lines)
    more = len(text.strip("\r\n")) - len(shown)
    end = f"\n… {more:,} more characters" if more > len(lines) else ""
    return harmless(shown) + end


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
