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

from qmd.cli.terminal import exact, one_line, paint, use_color
from qmd.errors import DecodeError, WriteDeclinedError
from qmd.files.edits.diff import diff_lines, single_lines, split_lines
from qmd.parse.decode import decode
from qmd.values.proposed import (
    Proposed,
    ProposedDeletion,
    ProposedFields,
    ProposedMove,
    ProposedText,
)

_LINES, _LINE_CHARS = 120, 2_000  # shown at first; the answer "a" shows all


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
        self._pause()
        lines = described(proposed)
        shown, left_out = shortened(lines)
        _print([heading(proposed), *shown])
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
                while True:
                    reply = click.prompt(
                        f"{question} [{'y/N/a' if more else 'y/N'}]",
                        default="",
                        show_default=False,
                        err=True,
                    )
                    if (answer := choices.get(reply.strip().lower())) is not None:
                        return answer
        except click.Abort:  # Ctrl-C or the end of the input
            return "n"


def _print(lines: Iterable[str]) -> None:
    color = use_color(sys.stderr)
    for line in lines:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1])
        sys.stderr.write((paint(line, style, color) if style else line) + "\n")
    sys.stderr.flush()


# --- what is shown -------------------------------------------------------------------


def heading(proposed: Proposed) -> str:
    """One line, safe for a terminal, that names the tool, the change and the file."""
    action = "change the metadata of"
    if isinstance(proposed, ProposedText):
        size = f"{len(proposed.after):,} bytes"
        if proposed.before is None:
            action = f"make a new file of {size}:"
        else:
            action = f"change {len(proposed.before):,} bytes to {size} in"
    elif isinstance(proposed, ProposedDeletion):
        action = f"delete, with its {len(proposed.before):,} bytes,"
    elif isinstance(proposed, ProposedMove):
        action = "move"
    return f"{proposed.tool} would {action} {exact(one_line(str(proposed.path)))}"


def described(proposed: Proposed) -> list[str]:
    """The whole change, safe for a terminal: a unified diff, or the fields of a photo."""
    if isinstance(proposed, ProposedFields):
        return [
            one_line(exact(line))
            for field in proposed.after
            for line in (
                f"@ {field}",
                *(f"- {value}" for value in proposed.before.get(field, ())),
                *(f"+ {value}" for value in proposed.after[field]),
            )
        ]
    if isinstance(proposed, ProposedMove):
        return [exact(one_line(f"to {proposed.target}"))]
    if isinstance(proposed, ProposedDeletion):
        deleted = split_lines(_text(proposed.before))
        return [exact(line) for line in single_lines(f"-{line}" for line in deleted)]
    after = _text(proposed.after)
    if proposed.before is None:
        return [exact(line) for line in single_lines(f"+{line}" for line in split_lines(after))]
    before = _text(proposed.before)
    if before == after:
        return ["(It holds these words already.)"]
    return list(map(exact, diff_lines(before, after)))


def shortened(lines: list[str]) -> tuple[list[str], str]:
    """The beginning of a description, and a phrase that says how much is left out."""
    shown = [line[:_LINE_CHARS] for line in lines[:_LINES]]
    more_lines = len(lines) - len(shown)
    more_chars = sum(map(len, lines)) - sum(map(len, shown))
    if not more_lines and not more_chars:
        return shown, ""
    left_out = f"{more_chars:,} more characters"
    if more_lines:
        left_out = f"{more_lines:,} more lines ({more_chars:,} characters)"
    return [*shown, f"… {left_out}"], left_out


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return decode(data).text
    except DecodeError:
        return f"({len(data):,} bytes that are no text)"
