"""
Shows the user what the agent is about to write, and asks for consent.

The user sees exactly the bytes that will be written, which the writer passes in a proposal.
Control characters and invisible characters are shown as escapes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from qmd.agent.questions import shortened
from qmd.cli.terminal import choose, paint, use_color
from qmd.errors import WriteDeclinedError
from qmd.values.proposed import Confirm, Proposed


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
        return choose(question, choices, shown="y/N/a" if more else "y/N")
    except click.Abort as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return "n"


def _print(lines: Iterable[str]) -> None:
    color = use_color(sys.stderr)
    for line in lines:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1])
        sys.stderr.write((paint(line, style, color) if style else line) + "\n")
    sys.stderr.flush()
