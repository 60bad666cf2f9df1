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
from typing import TextIO

# C0 without tab and newline, DEL and C1, bidi marks, embeddings, overrides and isolates,
# line and paragraph separators, and lone surrogates.
# It is the text of a pattern: compiling it on import would slow the start of every command.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

# More invisible characters: soft hyphen, joiners, byte order mark, fillers, tags.
_INVISIBLE = (
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

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


def use_color(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, color: bool) -> str:
    return f"{STYLES[style]}{text}{RESET}" if color and text else text


def one_line(text: str) -> str:
    """Escape every control character of a name or title, so that it fits on one line."""
    return text if text.isprintable() else re.sub(f"[\t\n]|{_UNSAFE}", _escape, text)


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


def harmless(text: str) -> str:
    """Escape the control characters of a text for a terminal; tabs and line ends stay."""
    return re.sub(_UNSAFE, _escape, text.replace("\r\n", "\n"))


def exact(text: str) -> str:
    """
    Escape control characters and invisible characters.

    For a text that the user must judge. Unlike `harmless`, it escapes the CR of a CR LF.
    """
    return re.sub(f"{_INVISIBLE}|{_UNSAFE}", _escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    short_escape = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short_escape:
        return short_escape
    code = ord(char)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escape_json(text: str) -> str:
    """Escape the unsafe characters that JSON allows raw."""
    # JSON has them in strings only; the pattern leaves out the newlines of the layout.
    return re.sub(_UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)


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
