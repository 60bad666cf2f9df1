"""
Writes to the terminal: colours text, and escapes control characters.

A control character in a note or a file name could move the cursor, hide text or answer as
the user, so a terminal never gets one raw. A pipe gets the text unchanged.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from qmd.values.printable import UNSAFE, exact, harmless, one_line

__all__ = [
    "RESET",
    "STYLES",
    "columns",
    "escape_json",
    "exact",
    "harmless",
    "json_text",
    "note",
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
    sys.stderr.write(paint(one_line(text), style, use_color(sys.stderr)) + "\n")


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
