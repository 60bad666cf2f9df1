"""
Text that UTF-8 cannot hold: halves of surrogate pairs.

JSON may escape them, a program may cut an emoji in two, and Python reads the bytes of a file
name that is no UTF-8 as such.
"""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """Pairs of surrogates become their character, halves U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shown(text: str) -> str:
    """Fit for a message: a half reads ``\\udcNN``."""
    return text.encode("utf-8", "backslashreplace").decode()
