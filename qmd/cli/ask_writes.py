"""
Shows the user what the agent is about to write, and asks for consent.

The user sees exactly the bytes that will be written, which the writer passes in a proposal.
Control characters and invisible characters are shown as escapes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import click

from qmd.agent.chat.questions import described, heading, shortened
from qmd.cli.terminal import choose, paint, use_color
from qmd.errors import WriteDeclinedError
from qmd.values.proposed import Proposed


class WriteQuestions:
    """
    Asks the user at the terminal before each write; a `qmd.values.proposed.Confirm`.

    Args:
        yes: Agree to every write without asking.
        pause: Stops the spinner before the question is printed.
        answering: A context for the wait for an answer; inside it Ctrl-C ends the wait.
    """

    def __init__(
        self,
        *,
        yes: bool,
        pause: Callable[[], None],
        answering: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._yes = yes
        self._pause = pause
        self._answering = answering

    def __call__(self, proposed: Proposed) -> bool:
        """
        Whether the user agrees to the write.

        Raises:
            WriteDeclinedError: There is no terminal to ask on.
        """
        if self._yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise WriteDeclinedError(
                "Nothing was written: a person has to agree to each write, and there is no "
                "terminal to ask on.",
                hint="The person can start it with --yes to agree to all writes beforehand.",
            )
        return self.ask(heading(proposed), described(proposed))

    def ask(self, headline: str, lines: list[str]) -> bool:
        """Show a change and ask whether to write it; without a terminal the answer is no."""
        if self._yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        self._pause()
        shown, left_out = shortened(lines)
        _print([headline, *shown])
        question = "Write this?"
        if left_out:
            question = f"Write this, with {left_out} that are not shown (a shows all)?"
        while (answer := self._ask(question, more=bool(left_out))) == "a":
            _print(lines)
            question, left_out = "Write this?", ""
        return answer == "y"

    def _ask(self, question: str, *, more: bool) -> str:
        """Ask until the answer is valid, and return "y", "n" or "a" (only with ``more``)."""
        choices = {"y": "y", "yes": "y", "n": "n", "no": "n", "": "n"}
        if more:
            choices |= {"a": "a", "all": "a"}
        try:
            with self._answering():
                return choose(question, choices, shown="y/N/a" if more else "y/N")
        except click.Abort:  # Ctrl-C or the end of the input
            return "n"


def _print(lines: Iterable[str]) -> None:
    color = use_color(sys.stderr)
    for line in lines:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1])
        sys.stderr.write((paint(line, style, color) if style else line) + "\n")
    sys.stderr.flush()
