"""
Writes to the terminal: colours text, and escapes control characters.

A control character in a note or a file name could move the cursor, hide text or answer as
the user, so a terminal never gets one raw. A pipe gets the text unchanged.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

import click

from qmd.values.printable import UNSAFE, exact, harmless, one_line

__all__ = [
    "RESET",
    "STYLES",
    "beside",
    "choose",
    "columns",
    "confirmed",
    "escape_json",
    "exact",
    "fitting",
    "hanging",
    "harmless",
    "json_text",
    "note",
    "note_lines",
    "one_line",
    "padded",
    "paint",
    "prepare_streams",
    "use_color",
    "waiting",
    "write",
    "write_json",
    "write_text",
]

RESET = "\x1b[0m"
STYLES = {
    "title": "\x1b[1m",
    "file": "\x1b[35m",
    "line": "\x1b[32m",
    "score": "\x1b[36m",
    "dim": "\x1b[2m",
    "match": "\x1b[1;31m",
    "error": "\x1b[1;31m",
    "warning": "\x1b[33m",
    "ok": "\x1b[32m",
}


def prepare_streams() -> None:
    """
    Make the standard streams safe to use.

    A character that the terminal's encoding lacks is escaped instead of ending the program. A
    stream that was closed at the start (``>&-``) is replaced by an empty one: else the next file
    that is opened, such as the database, would get its descriptor and all that is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest free one: that of the stream
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text on stderr while something takes its time, if stderr is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    sys.stderr.write(paint(text, "dim", use_color(sys.stderr)))
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def choose(question: str, answers: Mapping[str, str], *, shown: str) -> str:
    """
    Ask on stderr until the person types one of the answers.

    Args:
        answers: What may be typed, in lower case → what it means; "" is the Enter key.
        shown: What stands in brackets behind the question, such as ``y/N``.

    Raises:
        click.Abort: Ctrl-C, or the end of the input.
    """
    while True:
        typed = click.prompt(f"{question} [{shown}]", default="", show_default=False, err=True)
        answer = answers.get(typed.strip().lower())
        if answer is not None:
            return answer
        note("qmd: error: Type one of these: " + shown, style="error")


def confirmed(question: str, *, default: bool) -> bool:
    """Ask on stderr whether to do something. Raises click.Abort as `choose`."""
    answers = {"y": "y", "yes": "y", "n": "n", "no": "n", "": "y" if default else "n"}
    return choose(question, answers, shown="Y/n" if default else "y/N") == "y"


def use_color(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, color: bool) -> str:
    return f"{STYLES[style]}{text}{RESET}" if color and text else text


def padded(text: str, width: int) -> str:
    """Pad a text to ``width`` columns of a terminal, where a Chinese character takes two."""
    return text + " " * (width - columns(text))


def columns(text: str) -> int:
    """The width of a line in columns of a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def fitting(text: str, used: int) -> str:
    """
    A text for the end of a line of which ``used`` columns are taken.

    On a terminal it is cut to the width, with an ellipsis; "" if hardly any of it has room.
    """
    room = _width(sys.stdout) - used
    if columns(text) <= room:
        return text
    if room < _SHORTEST:
        return ""
    end = 0
    width = 1  # of the ellipsis
    for character in text:
        width += columns(character)
        if width > room:
            break
        end += 1
    return text[:end].rstrip() + "…"


def hanging(text: str, indent: int, stream: TextIO | None = None) -> str:
    """
    A paragraph that begins at column ``indent`` of its line; on a terminal, its lines end before
    the right edge and begin below its first character. A word is never cut, and neither is a path;
    Chinese text has no spaces, so its lines end after any character. The text may have colours.
    """
    room = _width(stream or sys.stdout) - indent
    if columns(_STYLE.sub("", text)) <= room or room < 2 * _SHORTEST:
        return text
    lines = [""]
    width = gap = 0  # columns: of the last line, and of the spaces after it
    style = ""  # what changes the colour before the next word
    for unit in _UNITS.findall(text):
        if unit.startswith("\x1b"):
            style += unit
        elif unit.isspace():
            gap += len(unit)
        else:
            if width and width + gap + columns(unit) > room:
                lines.append(style + unit)
                width = columns(unit)
            else:
                lines[-1] += " " * gap + style + unit
                width += gap + columns(unit)
            gap, style = 0, ""
    return ("\n" + " " * indent).join(lines) + style


def beside(text: str, addition: str, indent: int) -> str:
    """
    Two texts on a line that begins at column ``indent``; if a terminal has no room for both, the
    second stands below, two columns further right.
    """
    line = f"{text}  {addition}"
    if columns(_STYLE.sub("", line)) <= _width(sys.stdout) - indent:
        return line
    return f"{text}\n{'':{indent + 2}}{hanging(addition, indent + 2)}"


_SHORTEST = 12  # columns; in fewer, a text says too little
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60"
#: A style, spaces, a Chinese character, or a word. No line begins with a closing punctuation mark.
_UNITS = re.compile(
    rf"{_STYLE.pattern}| +"
    rf"|[（「『【《“]*[{_WIDE}][，。、；：！？）」』】》”…]*"
    rf"|[^ \x1b{_WIDE}]+"
)


def _width(stream: TextIO) -> int:
    """The columns of a terminal; as good as endless elsewhere."""
    if not stream.isatty():
        return 1 << 30
    import shutil

    return shutil.get_terminal_size().columns


def escape_json(text: str) -> str:
    """Escape the unsafe characters that JSON allows raw."""
    # JSON has them in strings only; the pattern leaves out the newlines of the layout.
    return re.sub(UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)


def write(text: str) -> None:
    """Write a result to stdout; the caller has escaped its parts."""
    sys.stdout.write(text)


def write_text(text: str) -> None:
    """Write a text to stdout: escaped if that is a terminal, else unchanged."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


def write_json(value: object) -> None:
    """Write a value of `qmd.values`, a list of them, or any JSON value to stdout."""
    sys.stdout.write(json_text(value) + "\n")


def json_text(value: object) -> str:
    """A value of `qmd.values`, a list of them, or any JSON value as `write_json` writes it."""
    import json

    from qmd.values.wire import to_wire

    return escape_json(json.dumps(to_wire(value), ensure_ascii=False, indent=2))


def note(text: str, *, style: str = "dim") -> None:
    """Write one line to stderr: a warning or a remark."""
    note_lines(hanging(one_line(text), 0, sys.stderr), style=style)


def note_lines(text: str, *, style: str = "dim") -> None:
    """Write lines to stderr, of which the caller has escaped the parts."""
    sys.stderr.write(paint(text, style, use_color(sys.stderr)) + "\n")


def group_headings(groups: Sequence[str | None], color: bool) -> Iterator[list[str]]:
    """
    For each hit or document the heading above it, if it is the first of its group.

    Args:
        groups: The group of each; None for those without. No heading if all are without.
    """
    has_groups = any(group is not None for group in groups)
    before = None
    for group in groups:
        key = (group or "").casefold()
        is_first = key != before and has_groups
        before = key
        yield (
            [paint(f"── {one_line(group or '(none)')}", "title", color) + "\n"] if is_first else []
        )
