"""Short texts of photos: often UTF-8, sometimes in the encoding of an old camera or program."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.errors import DecodeError
from qmd.parse.decode import decode

_ONE_SIGN_A_BYTE = bytes(range(0x80, 0x100))


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


def encoding_of(texts: Sequence[bytes]) -> str:
    """
    The encoding of texts that one program wrote, as a Python codec; ``ascii`` if it makes no
    difference.

    Together they tell more than each: of ``北京`` alone, its bytes might be Korean.
    """
    if all(text.isascii() for text in texts):
        return "ascii"
    # In lines of their own: no sign of two bytes may begin in one text and end in the next.
    raw = b"\n".join(text for text in texts if not _is_utf8(text)).replace(b"\0", b"")
    try:
        return decode(raw).encoding if raw else "utf-8"
    except DecodeError:
        return "utf-8"


def decoded_by(raw: bytes, encoding: str) -> str:
    """
    The text, by the encoding that it has in all likelihood; without NUL and lone surrogates.

    Where every byte is a sign any bytes are a text, but hardly ever those that are UTF-8.
    """
    if _is_one_sign_a_byte(encoding):
        try:
            return raw.decode().replace("\0", "")
        except UnicodeDecodeError:
            pass
    try:
        text = raw.decode(encoding).replace("\0", "")
        text.encode()
    except UnicodeError:
        return decoded(raw)
    return text


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_one_sign_a_byte(encoding: str) -> bool:
    return len(_ONE_SIGN_A_BYTE.decode(encoding, "replace")) == len(_ONE_SIGN_A_BYTE)
