"""
Handle text that UTF-8 cannot encode, because it has halves of surrogate pairs.

Such halves come from escapes in JSON, from programs that cut an emoji in two, and from file names
that are not UTF-8, whose bytes Python decodes to them.
"""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """Replace surrogate pairs by their characters, and lone halves by U+FFFD."""
    if is_utf8(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shown(text: str) -> str:
    """Escape a text for messages: a half becomes ``\\udcNN``."""
    return text.encode("utf-8", "backslashreplace").decode()
