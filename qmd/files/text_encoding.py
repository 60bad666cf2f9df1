"""In which encoding text is appended to a file."""

from __future__ import annotations

from qmd.parse.decode import decode


def encoding_of(present: bytes) -> str:
    """
    The Python codec of a text; what is appended to it must share it.

    Raises:
        DecodeError: It is no text.
    """
    try:
        present.decode("utf-8")
    except UnicodeDecodeError:
        return decode(present).encoding
    return "utf-8"
