"""
Shows an agent's run to the user.

The answer goes to stdout: to a terminal piece by piece as it arrives, to a file or pipe only
when it is complete. Tool calls go to stderr: to a terminal as cards, elsewhere as lines. Raw
control characters in the text of a model or a document never reach a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from qmd.agent.citations import format_citation, marked
from qmd.agent.loop import Answered, Asking, BadBlock, Happening, ToolExecution, ToolStarted
from qmd.agent.parser import AnswerText, ToolCall
from qmd.cli.terminal import Wrapping, harmless, note, one_line, use_color, write_text
from qmd.inference.llm import Delta, Retry

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.status import Status

_MAX_CARD_WIDTH = 100
_LINES, _CHARS = 8, 600  # at most, for a value or a result in a card
_LINE_CHARS = 160  # at most, for a value or a result in a line


class RunView(Protocol):
    """Shows the events of a run."""

    def __call__(self, happening: Happening) -> None: ...

    def end(self) -> None:
        """Stop the spinner, and move the cursor to the beginning of a line."""
        ...


@contextmanager
def view_of_a_run(model: str, *, silent: bool, strict: bool = False) -> Iterator[RunView]:
    """
    Give a view that shows a run while it goes on, and end the view afterwards.

    Args:
        silent: Show nothing, because the run is printed as JSON when it is over.
        strict: Mark the sentences of the answer that no citation supports.
    """
    if silent:
        yield _Silent()
        return
    view = _View(model, strict, _Cards() if sys.stderr.isatty() else _Lines())
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
    """Prints the text of answers; ``tools`` shows the tool calls and the waiting."""

    def __init__(self, model: str, strict: bool, tools: _Cards | _Lines) -> None:
        self._model = one_line(model)
        self._strict = strict
        self._tools = tools
        self._live = sys.stdout.isatty()
        self._answer = AnswerText()
        self._wrapping = Wrapping()
        self._begun = False  # the terminal shows a part of the present answer
        self._line_open = False  # the part ends in the middle of a line

    def __call__(self, happening: Happening) -> None:
        if isinstance(happening, Asking):
            self._answer = AnswerText()
            self._begun = False
            self._tools.wait(f"asking {self._model}" + _round_number(happening.iteration))
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
        else:  # the run failed; the question whether to try again may follow
            self.end()

    def end(self) -> None:
        self._tools.idle()
        self._end_line()

    def _answered(self, answered: Answered) -> None:
        if self._live:
            self._write(self._answer.rest(answered.parsed))
            self._tools.idle()
            self._end_line()
            self._warn_of_citations(answered)
            return
        self._tools.idle()
        text = answered.parsed.text
        if answered.final:
            text = marked(text, answered.checked, strict=self._strict)
            write_text(text + "\n")
            sys.stdout.flush()
        elif text:
            sys.stderr.write(harmless(text) + "\n")

    def _warn_of_citations(self, answered: Answered) -> None:
        """Name what the check found wrong with an answer that the terminal shows already."""
        for citation in answered.checked.citations:
            if citation.status == "not_found":
                place = format_citation(citation.file, citation.from_line, citation.to_line)
                note(f"Not found in the source: {place}: {citation.reason}", style="warning")
        if self._strict:
            for sentence in answered.checked.unsupported:
                note(f"Without support: {one_line(sentence.text)}", style="warning")

    def _write(self, text: str) -> None:
        """Print the next piece of the answer, without the blank lines before its first text."""
        if not self._live:
            return
        text = text if self._begun else text.lstrip()
        if not text:
            return
        self._tools.idle()
        sys.stdout.write(self._wrapping.feed(harmless(text)))
        sys.stdout.flush()
        self._begun = True
        self._line_open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._line_open:
            sys.stdout.write(self._wrapping.end() + "\n")
            sys.stdout.flush()
            self._wrapping = Wrapping()
            self._line_open = False


def _round_number(iteration: int) -> str:
    return f" (round {iteration})" if iteration > 1 else ""


class _Lines:
    """Prints one line on stderr for each tool call."""

    def wait(self, activity: str) -> None:
        pass

    def idle(self) -> None:
        pass

    def show(self, execution: ToolExecution) -> None:
        params = ", ".join(f"{key}={_value(value)}" for key, value in execution.call.params.items())
        outcome = "ok" if execution.result.success else "error"
        result = _shortened(" ".join(execution.result.text.split()), _LINE_CHARS)
        at, duration = _when(execution)
        note(f"{execution.call.tool}({params}) {outcome} at {at} in {duration}: {result}")

    def refused(self, block: BadBlock) -> None:
        note(f"A tool call that cannot be read: {block.problem.error}", style="warning")


def _when(execution: ToolExecution) -> tuple[str, str]:
    """The local time of day when a call began, and how long it took."""
    return f"{execution.timestamp.astimezone():%H:%M:%S}", f"{execution.duration_s:.2f} s"


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
            color_system="auto" if use_color(sys.stderr) else None,
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

    def show(self, execution: ToolExecution) -> None:
        self._print(card(execution))

    def refused(self, block: BadBlock) -> None:
        note(f"A tool call that cannot be read: {block.problem.error}", style="warning")

    def _print(self, panel: RenderableType) -> None:
        self._console.print(panel, width=min(self._console.width, _MAX_CARD_WIDTH))


def card(execution: ToolExecution) -> RenderableType:
    """A card for a tool call: name, parameters, result, time and duration."""
    success = execution.result.success
    colour = "green" if success else "red"
    result = Text(_excerpt(execution.result.text) or "(nothing)", style="" if success else "red")
    parameters = _parameters(execution.call)
    body = Group(*([parameters, Rule(style="dim")] if parameters else []), result)
    title = Text(f"{'✅' if success else '❌'} {one_line(execution.call.tool)}", style="bold")
    when = Text(" · ".join(_when(execution)), style="dim")
    return Panel(
        body,
        title=title,
        title_align="left",
        subtitle=when,
        subtitle_align="right",
        border_style=colour,
    )


def _parameters(call: ToolCall) -> Any:
    if not call.params:
        return None
    table = Table.grid(padding=(0, 1))
    for name, value in _parameter_texts(call.params).items():
        table.add_row(Text(one_line(name), style="cyan"), Text(value))
    return table


def _parameter_texts(params: Mapping[str, Any]) -> dict[str, str]:
    """The values as a card shows them: a text as it is, anything else as JSON."""
    return {
        name: _excerpt(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in params.items()
    }


def _excerpt(text: str) -> str:
    """The beginning of a text, and a line that says how many more characters there are."""
    lines = text.strip("\r\n")[:_CHARS].splitlines()[:_LINES]
    shown = "\n".join(lines)
    more = len(text.strip("\r\n")) - len(shown)
    end = f"\n… {more:,} more characters" if more > len(lines) else ""
    return harmless(shown) + end


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
