"""Decodes short texts of photos: UTF-8, or the encoding of an old camera or program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmd.errors import DecodeError
from qmd.parse.decode import decode

_ONE_SIGN_A_BYTE = bytes(range(0x80, 0x100))
_MAX_GUESSES = 32


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


class Guesser:
    """
    `decoded` for the texts of one photo: the encoding is guessed for `_MAX_GUESSES` of them,
    which takes milliseconds each, and the last guess holds for the thousands that may follow.
    """

    def __init__(self) -> None:
        self._left = _MAX_GUESSES
        self._encoding = "utf-8"

    def decoded(self, raw: bytes) -> str:
        if _is_utf8(raw):
            return decoded(raw)
        if self._left:
            self._left -= 1
            self._encoding = encoding_of([raw])
            return decoded(raw)
        text = raw.decode(self._encoding, "replace").replace("\0", "")
        return text.encode("utf-8", "replace").decode()


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


def decoded_by(raw: bytes, encoding: str, otherwise: Callable[[bytes], str] = decoded) -> str:
    """
    The text, by the encoding that it has in all likelihood, or else as ``otherwise`` reads it;
    without NUL and lone surrogates.

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
        return otherwise(raw)
    return text


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_one_sign_a_byte(encoding: str) -> bool:
    return len(_ONE_SIGN_A_BYTE.decode(encoding, "replace")) == len(_ONE_SIGN_A_BYTE)
