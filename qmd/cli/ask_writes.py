"""
Before the agent writes: what would change is shown, and the person at the terminal is asked.

Shown is what the writer hands over, the very bytes that it will write. Nothing of it reaches
the terminal raw, and what nobody could see is shown as an escape.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import click

from qmd.cli.terminal import exact, one_line, paint, use_color
from qmd.errors import DecodeError, WriteDeclinedError
from qmd.parse.decode import decode
from qmd.values.proposed import Proposed, ProposedFields, ProposedText

_LINES, _LINE_CHARS = 120, 2_000  # that are shown before somebody asks for all
_CONTEXT = 3
#: Lines before times lines after: above that the search for what is common takes too long.
_COMPARED = 250_000
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


class WriteQuestions:
    """
    Asks before each write, on the terminal; a `qmd.values.proposed.Confirm`.

    Args:
        yes: Do not ask; the answer is yes.
        pause: Stops whatever moves on the terminal.
        answering: Around the waiting for an answer, which Ctrl-C ends.
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
        """Raises WriteDeclinedError: Nobody can be asked."""
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
        """y, n or a."""
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
        except click.Abort:  # Ctrl-C or the end of the input is no yes
            return "n"


def _print(lines: Iterable[str]) -> None:
    color = use_color(sys.stderr)
    for line in lines:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1])
        sys.stderr.write((paint(line, style, color) if style else line) + "\n")
    sys.stderr.flush()


# --- what is shown -------------------------------------------------------------------


def heading(proposed: Proposed) -> str:
    """What would be done to which file, in a line that is safe for a terminal."""
    what = "change the metadata of"
    if isinstance(proposed, ProposedText):
        size = f"{len(proposed.after):,} bytes"
        if proposed.before is None:
            what = f"make a new file of {size}:"
        else:
            what = f"change {len(proposed.before):,} bytes to {size} in"
    return f"{proposed.tool} would {what} {exact(one_line(str(proposed.path)))}"


def described(proposed: Proposed) -> list[str]:
    """All of a change: a unified diff, or the fields of a photo; safe for a terminal."""
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
    after = _text(proposed.after)
    if proposed.before is None:
        return [exact(line) for line in _split(f"+{line}" for line in _lines(after))]
    before = _text(proposed.before)
    if before == after:
        return ["(It holds these words already.)"]
    return list(map(exact, _diff(_lines(before), _lines(after))))


def shortened(lines: list[str]) -> tuple[list[str], str]:
    """The beginning of a description, and in words how much of it is left out."""
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


def _lines(text: str) -> list[str]:
    """At line ends alone; the end of the last line is told, as it is in a diff."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def _diff(before: list[str], after: list[str]) -> list[str]:
    """Unified, without the lines that name the files."""
    shortest = min(len(before), len(after))
    same = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    rest = shortest - same
    same_end = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    begin, end = max(0, same - _CONTEXT), max(0, same_end - _CONTEXT)
    old, new = before[begin : len(before) - end], after[begin : len(after) - end]
    if len(old) * len(new) > _COMPARED:
        middle = slice(same - begin, -(same_end - end) or None)
        hunk = [f"@@ -{begin + 1},{len(old)} +{begin + 1},{len(new)} @@"]
        hunk += [f" {line}" for line in old[: same - begin]]
        hunk += [f"-{line}" for line in old[middle]] + [f"+{line}" for line in new[middle]]
        hunk += [f" {line}" for line in old[len(old) - (same_end - end) :]]
        return _split(hunk)
    unified = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    return _split(_moved(line, begin) for line in list(unified)[2:])


def _moved(line: str, by: int) -> str:
    """The line that begins a hunk counts from the beginning of the file."""
    hunk = _HUNK.fullmatch(line)
    if hunk is None:
        return line
    return f"@@ -{int(hunk[1]) + by}{hunk[2] or ''} +{int(hunk[3]) + by}{hunk[4] or ''} @@"


def _split(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in line.split("\n")]
