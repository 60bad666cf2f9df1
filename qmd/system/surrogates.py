"""
Handle text that UTF-8 cannot encode: halves of surrogate pairs.

JSON may contain them as escapes, a program may cut an emoji in two, and Python decodes the bytes
of a file name that is not UTF-8 to them.
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
    """Replace pairs of surrogates by their character, and halves by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shown(text: str) -> str:
    """The text as messages show it: a half reads ``\\udcNN``."""
    return text.encode("utf-8", "backslashreplace").decode()
