"""
Escapes the characters of a text that a terminal would obey, or that a reader would not see.

A control character in a note or a file name could move the cursor, hide text or answer as the
user. Before a model, a line break in a name could add a line that looks like a tool's result.
"""

from __future__ import annotations

import re

# C0 without tab and newline, DEL and C1, bidi marks, embeddings, overrides and isolates,
# line and paragraph separators, and lone surrogates.
# It is the text of a pattern: compiling it on import would slow the start of every command.
UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

# More invisible characters: soft hyphen, joiners, byte order mark, fillers, tags.
_INVISIBLE = (
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def is_safe_name(name: str) -> bool:
    """Whether a new file may have this name or path: `one_line` would escape nothing of it."""
    return one_line(name) == name


def one_line(text: str) -> str:
    """Escape every control character of a name or title, so that it fits on one line."""
    return text if text.isprintable() else re.sub(f"[\t\n]|{UNSAFE}", _escape, text)


def harmless(text: str) -> str:
    """Escape the control characters of a text for a terminal; tabs and line ends stay."""
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text  # as most texts are, for which the pattern need not be compiled
    return re.sub(UNSAFE, _escape, text)


def exact(text: str) -> str:
    """
    Escape control characters and invisible characters.

    For a text that the user must judge. Unlike `harmless`, it escapes the CR of a CR LF.
    """
    return re.sub(f"{_INVISIBLE}|{UNSAFE}", _escape, text)


def escape_json(text: str) -> str:
    """Escape the unsafe characters that JSON allows raw."""
    # JSON has them in strings only; the pattern leaves out the newlines of the layout.
    return re.sub(UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    short_escape = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short_escape:
        return short_escape
    code = ord(char)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
