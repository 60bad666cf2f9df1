"""The records of IPTC IIM: what newspapers wrote into photos before there was XMP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qmd.parse.photo.text import decoded

_MAX_RECORDS = 10_000
_UTF8 = b"\x1b%G"
_TEXTS = {
    5: "title",
    55: "date",
    60: "time",
    90: "city",
    92: "location",
    95: "state",
    101: "country",
    120: "description",
}
_KEYWORDS = 25


@dataclass(frozen=True, slots=True)
class Iptc:
    """
    ``texts`` as they are written, by the names of `_TEXTS`; ``date`` like ``20240714``.

    ``marked`` tells whether the record says that its texts are UTF-8; ``raw`` are the bytes of
    all its texts, those not named here too.
    """

    keywords: tuple[str, ...]
    texts: Mapping[str, str]
    marked: bool
    raw: bytes


def read_iptc(records: bytes) -> Iptc:
    """The fields; what is damaged ends the reading."""
    texts: dict[str, bytes] = {}
    keywords: list[bytes] = []
    raw: list[bytes] = []
    marked = False
    at = 0
    for _ in range(_MAX_RECORDS):
        if len(records) < at + 5 or records[at] != 0x1C:
            break
        record, number = records[at + 1], records[at + 2]
        length = int.from_bytes(records[at + 3 : at + 5], "big")
        at += 5
        if length & 0x8000:  # the length of the length
            size = length & 0x7FFF
            if size > 8:
                break
            length = int.from_bytes(records[at : at + size], "big")
            at += size
        value = records[at : at + length]
        at += length
        if record == 1 and number == 90:
            marked = value == _UTF8
        elif record == 2:
            raw.append(value)
            if number == _KEYWORDS:
                keywords.append(value)
            elif number in _TEXTS:
                texts.setdefault(_TEXTS[number], value)
    return Iptc(
        keywords=tuple(decoded(each) for each in keywords),
        texts={name: decoded(value) for name, value in texts.items()},
        marked=marked,
        raw=b"\n".join(raw),
    )
