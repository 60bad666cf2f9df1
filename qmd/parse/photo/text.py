"""Short texts of photos: often UTF-8, sometimes in the encoding of an old camera or program."""

from __future__ import annotations

from qmd.errors import DecodeError
from qmd.parse.decode import decode


def decoded(raw: bytes) -> str:
    """The text, without NUL and without lone surrogates."""
    if raw.isascii():
        return raw.decode().replace("\0", "")
    try:
        return raw.decode().replace("\0", "")
    except UnicodeDecodeError:
        pass
    try:
        return decode(raw.replace(b"\0", b"")).text
    except DecodeError:
        return raw.decode("utf-8", "replace").replace("\0", "")
