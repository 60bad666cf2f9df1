"""
Writes to the terminal: colours text, and escapes control characters.

A control character in a note or a file name could move the cursor, hide text or answer as
the user, so a terminal never gets one raw. A pipe gets the text unchanged.
"""

from __future__ import annotations

import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from qmd import cli, lazy, libraries
from qmd.errors import ConfigError
from qmd.values.text import escape_json as escape_json  # noqa: PLC0414 - from here, too
from qmd.values.text import harmless as harmless  # noqa: PLC0414 - from here, too
from qmd.values.text import one_line as one_line  # noqa: PLC0414 - from here, too

if TYPE_CHECKING:
    import subprocess

    from qmd.values import Progress, ProgressCallback

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
    is_on_screen = sys.stderr.isatty() and not isinstance(sys.stderr, _Pager)
    if not is_on_screen or os.environ.get("TERM") == "dumb":
        yield
        return
    sys.stderr.write(paint(text, "dim", sys.stderr))
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
        shown: What stands in brackets after the question, such as ``y/N``.

    Raises:
        click.Abort: Ctrl-C, or the end of the input.
    """
    while True:
        typed = libraries.click.prompt(
            f"{question} [{shown}]", default="", show_default=False, err=True
        )
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


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """A text in its style, if ``stream`` (None: stdout) shows colours."""
    return f"{STYLES[style]}{text}{RESET}" if text and use_color(stream or sys.stdout) else text


def padded(text: str, width: int) -> str:
    """Pad a text to ``width`` columns of a terminal, where a Chinese character takes two."""
    return text + " " * (width - columns(text))


def columns(text: str) -> int:
    """The width of a line in columns of a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def fitting(text: str, used: int, *, lines: int = 1) -> str:
    """
    A text for the end of a line of which ``used`` columns are taken.

    On a terminal it is cut to the width, with an ellipsis; "" if hardly any of it has room. With
    ``lines``, it goes on in further lines, which begin below its first character.
    """
    room = lines * (_width(sys.stdout) - used)
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


def fitting_path(path: str, used: int) -> str:
    """
    A path for the end of a line of which ``used`` columns are taken.

    On a terminal folders at its beginning that have no room become "…"; `qmd get` takes the rest.
    """
    shown = path
    while used + columns(shown) > _width(sys.stdout) and "/" in path:
        path = path.partition("/")[2]
        shown = f"…/{path}"
    return shown


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
    for unit in re.findall(_UNITS, text):
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


class Wrapping:
    """
    Ends the lines of a text between words, as `hanging` does, while it arrives in pieces.

    A line goes on below the first word of its paragraph or list item. Lines between code fences
    stay as they are, so that they can be copied.
    """

    def __init__(self) -> None:
        self._pending = ""  # the last word, which may go on
        self._line = ""  # the beginning of the present line of the text
        self._column = 0
        self._is_code = False

    def feed(self, text: str) -> str:
        """Take the next piece, and return what can be printed now."""
        pieces = re.findall(_PIECES, self._pending + text)
        self._pending = pieces.pop() if pieces and not pieces[-1].isspace() else ""
        return "".join(map(self._placed, pieces))

    def end(self) -> str:
        """What was held back."""
        word, self._pending = self._pending, ""
        return self._placed(word) if word else ""

    def _placed(self, piece: str) -> str:
        if piece == "\n":
            if self._line.lstrip().startswith(("```", "~~~")):
                self._is_code = not self._is_code
            self._line, self._column = "", 0
            return piece
        beginning = _ITEM.match(self._line)
        indent = len(beginning[0]) if beginning else 0
        if len(self._line) < _LONGEST_INDENT:
            self._line += piece
        width = _width(sys.stdout)
        before, self._column = self._column, self._column + columns(piece)
        if self._column <= width or self._is_code or not before or indent > width // 2:
            return piece
        if piece.isspace():
            self._column = width
            return ""
        self._column = indent + columns(piece)
        return "\n" + " " * indent + piece


def beside(text: str, addition: str, indent: int) -> str:
    """
    Two texts on a line that begins at column ``indent``; if a terminal has no room for both, the
    second stands below, two columns further right.
    """
    if not addition:
        return text
    line = f"{text}  {addition}"
    if columns(_STYLE.sub("", line)) <= _width(sys.stdout) - indent:
        return line
    return f"{text}\n{'':{indent + 2}}{hanging(addition, indent + 2)}"


def table_row(facts: str, name: str, text: str) -> str:
    """
    A line of a list: facts, the name of a file, and a text such as its title.

    On a terminal the text is cut to the width. Where facts and name have no room side by side, the
    name stands below. Facts and name may have colours; facts may be "".
    """
    facts = f"{facts}  " if facts else ""
    used = columns(_STYLE.sub("", facts))
    wide = used + columns(_STYLE.sub("", name))
    width = _width(sys.stdout)
    if facts and wide > width:
        return f"{facts}{fitting(text, used)}".rstrip() + f"\n  {name}"
    if text and wide + 2 + min(columns(text), _ENOUGH) > width and not facts:
        return f"{name}\n  {fitting(text, 2)}"
    return f"{facts}{name}  {fitting(text, wide + 2)}".rstrip()


_ENOUGH = 30  # columns; in fewer, a line of a note says too little after its place
_LONGEST_INDENT = 40  # characters
_SHORTEST = 12  # columns; in fewer, a text says too little
#: A colour, or the address of a link: neither takes a column.
_STYLE_TEXT = r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\"
_STYLE = lazy.pattern(_STYLE_TEXT)
_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60"
#: A style, spaces, a Chinese character, or a word. No line begins with a closing punctuation mark.
#: Compiling this and the next takes 7 ms, so that it is left to their first use.
_WIDE_UNIT = rf"[（「『【《“]*[{_WIDE}][，。、；：！？）」』】》”…]*"
_UNITS = rf"{_STYLE_TEXT}| +|{_WIDE_UNIT}|[^ \x1b{_WIDE}]+"
_PIECES = rf"\n|[ \t]+|{_WIDE_UNIT}|[^ \t\n{_WIDE}]+"
_ITEM = lazy.pattern(r"\s*(?:(?:[-*+]|\d{1,3}[.)]|>)\s+)*")  # what a list item begins with


def readable_size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def rows() -> int | None:
    """The lines of the terminal that stdout is; None if it is none, or a pager shows them."""
    if not sys.stdout.isatty() or isinstance(sys.stdout, _Pager):
        return None
    return _size().lines


def _width(stream: TextIO) -> int:
    """The columns of a terminal; as good as endless elsewhere."""
    if not stream.isatty():
        return 1 << 30
    return _size().columns


def _size() -> os.terminal_size:
    return libraries.shutil.get_terminal_size()


class _Pager(io.TextIOWrapper):
    """Stdout while a pager shows it: for all that prints, it is still the terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged(command: str | None) -> Iterator[None]:
    """
    Show what is printed to a terminal in a pager, such as ``less``.

    Without options of its own, ``less`` gets those that git gives it: it ends at once if all fits
    on the screen, shows colours, and leaves the text there. Elsewhere, and without a pager, nothing
    changes.

    Raises:
        ConfigError: The pager cannot be started.
    """
    if not command or not sys.stdout.isatty():
        yield
        return
    import subprocess

    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        process = subprocess.Popen(
            libraries.shlex.split(command), stdin=subprocess.PIPE, env=environment
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The pager {command!r} cannot be started: {error}",
            hint="Give another in the setting pager, or in QMD_PAGER; 'cat' is none.",
        ) from error
    assert process.stdin is not None
    streams = sys.stdout, sys.stderr
    pager = _Pager(process.stdin, encoding="utf-8", errors="backslashreplace")
    # Remarks on the screen of the pager would be in its way.
    sys.stdout, sys.stderr = pager, pager if sys.stderr.isatty() else sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        with suppress(BrokenPipeError):  # the person has left it
            pager.close()
        _wait_for(process)


def _wait_for(pager: subprocess.Popen[bytes]) -> None:
    """Wait until a pager has ended; Ctrl-C is for it alone."""
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue
        return


def write(text: str) -> None:
    """Write a result to stdout; the caller has escaped its parts."""
    sys.stdout.write(text)


def write_text(text: str) -> None:
    """Write a text to stdout: escaped if that is a terminal, else unchanged."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


def write_json(value: object) -> None:
    """Write a value of `qmd.values`, a list of them, or any JSON value to stdout."""
    sys.stdout.write(json_text(value) + "\n")


def json_text(value: object, *, indent: int | None = 2) -> str:
    """A value of `qmd.values`, a list of them, or any JSON value as `write_json` writes it."""
    import json

    from qmd.values.wire import to_wire

    return escape_json(json.dumps(to_wire(value), ensure_ascii=False, indent=indent))


def note(text: str, *, style: str = "dim") -> None:
    """Write one line to stderr: a warning or a remark."""
    note_lines(hanging(one_line(text), 0, sys.stderr), style=style)


def note_lines(text: str, *, style: str = "dim") -> None:
    """Write lines to stderr, of which the caller has escaped the parts."""
    sys.stderr.write(paint(text, style, sys.stderr) + "\n")


def group_headings(groups: Sequence[str | None]) -> Iterator[list[str]]:
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
        yield ([paint(f"── {one_line(group or '(none)')}", "title") + "\n"] if is_first else [])


# --- progress ------------------------------------------------------------------------


@contextmanager
def progress_bar() -> Iterator[ProgressCallback | None]:
    """Give a callback that draws the progress, or None if stderr is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    with cli.bars.drawn_progress() as draw:
        yield draw


@contextmanager
def progress_bar_if_needed() -> Iterator[ProgressCallback]:
    """As `progress_bar`, but nothing is imported or drawn before the callback is called."""
    with ExitStack() as stack:
        opened: list[ProgressCallback | None] = []

        def draw(tick: Progress) -> None:
            if not opened:
                opened.append(stack.enter_context(progress_bar()))
            if opened[0] is not None:
                opened[0](tick)

        yield draw
