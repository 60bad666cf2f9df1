"""Reads the few fields of EXIF, a TIFF structure, that tell a reader something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qmd.parse.photo.text import decoded

_MAX_ENTRIES = 2000
_MAX_TEXT = 1024 * 1024
_EXIF_DIRECTORY = 0x8769
_TEXTS = {
    0x010E: "description",
    0x010F: "make",
    0x0110: "model",
    0x9003: "original",
    0x9004: "digitized",
    0x9010: "offset",
    0x9011: "offset_original",
    0x9012: "offset_digitized",
}
_ASCII, _LONG, _UTF8 = 2, 4, 129


@dataclass(frozen=True, slots=True)
class Exif:
    """Texts as they are written, "" where there are none; dates like ``2024:07:14 18:30:00``."""

    description: str = ""
    make: str = ""
    model: str = ""
    original: str = ""
    digitized: str = ""
    offset: str = ""
    offset_original: str = ""
    offset_digitized: str = ""


def read_exif(tiff: bytes) -> Exif | None:
    """The fields; None where this is no TIFF structure. What is damaged counts as absent."""
    order: Literal["little", "big"]
    if tiff.startswith(b"II*\0"):
        order = "little"
    elif tiff.startswith(b"MM\0*"):
        order = "big"
    else:
        return None
    texts: dict[str, str] = {}
    below = _read_directory(tiff, _int(tiff, 4, 4, order), order, texts)
    if below:
        _read_directory(tiff, below, order, texts)
    return Exif(**texts)


def _int(data: bytes, at: int, size: int, order: Literal["little", "big"]) -> int:
    return int.from_bytes(data[at : at + size], order)


def _read_directory(
    tiff: bytes, at: int, order: Literal["little", "big"], texts: dict[str, str]
) -> int:
    """Fills in ``texts``; returns where the directory of EXIF proper is, 0 without one."""
    below = 0
    for number in range(min(_int(tiff, at, 2, order), _MAX_ENTRIES)):
        entry = at + 2 + 12 * number
        if entry + 12 > len(tiff):
            break
        tag = _int(tiff, entry, 2, order)
        kind = _int(tiff, entry + 2, 2, order)
        count = _int(tiff, entry + 4, 4, order)
        if tag == _EXIF_DIRECTORY and kind == _LONG:
            below = _int(tiff, entry + 8, 4, order)
        elif (
            (name := _TEXTS.get(tag)) is not None
            and name not in texts  # the first counts, and a thousand more are not decoded
            and kind in (_ASCII, _UTF8)
            and count <= _MAX_TEXT
        ):
            place = entry + 8 if count <= 4 else _int(tiff, entry + 8, 4, order)
            raw = tiff[place : place + count].partition(b"\0")[0]
            texts[name] = decoded(raw)
    return below
