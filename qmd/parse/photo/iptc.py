"""The records of IPTC IIM: what newspapers wrote into photos before there was XMP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qmd.parse.photo.text import Guesser, decoded_by, encoding_of

_MAX_RECORDS = 10_000
_UTF8 = b"\x1b%G"
_CHARACTERS = (1, 90)
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
#: What of the second record is no text: its version, and small pictures.
_BINARY = frozenset((0, 125, 200, 201, 202))


@dataclass(frozen=True, slots=True)
class Iptc:
    """
    ``texts`` as they are written, by the names of `_TEXTS`; ``date`` like ``20240714``.

    ``encoding`` is that of all texts, those not named here too: what the record says (UTF-8),
    else what they are in all likelihood; ``ascii`` where it makes no difference. ``marked``
    tells whether the record says it.
    """

    keywords: tuple[str, ...]
    texts: Mapping[str, str]
    encoding: str
    marked: bool


def read_iptc(records: bytes) -> Iptc:
    """The fields; what is damaged ends the reading."""
    texts: dict[str, bytes] = {}
    keywords: list[bytes] = []
    for record, number, value in _fields(records):
        if record == 2 and number == _KEYWORDS:
            keywords.append(value)
        elif record == 2 and number in _TEXTS:
            texts.setdefault(_TEXTS[number], value)
    marked, encoding = _encoding(records)
    guess = Guesser().decoded

    def text(value: bytes) -> str:
        # Programs have marked what others had written in an encoding of their own.
        return guess(value) if marked else decoded_by(value, encoding, guess)

    return Iptc(
        keywords=tuple(text(each) for each in keywords),
        texts={name: text(value) for name, value in texts.items()},
        encoding=encoding,
        marked=marked,
    )


def iptc_in_utf8(records: bytes) -> bytes:
    """The same records with all texts in UTF-8, and saying so."""
    _, encoding = _encoding(records)
    guess = Guesser().decoded
    found = [_field(*_CHARACTERS, _UTF8)]
    for record, number, value in _fields(records):
        if (record, number) == _CHARACTERS:
            continue
        is_text = record == 2 and number not in _BINARY
        found.append(
            _field(
                record, number, decoded_by(value, encoding, guess).encode() if is_text else value
            )
        )
    return b"".join(found)


def _encoding(records: bytes) -> tuple[bool, str]:
    """Whether the record says that its texts are UTF-8, and what they are."""
    texts: list[bytes] = []
    for record, number, value in _fields(records):
        if (record, number) == _CHARACTERS and value == _UTF8:
            return True, "utf-8"
        if record == 2 and number not in _BINARY:
            texts.append(value)
    return False, encoding_of(texts)


def _fields(records: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The number of the record, of the field in it, and the value."""
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
        yield record, number, records[at : at + length]
        at += length


def _field(record: int, number: int, value: bytes) -> bytes:
    length = len(value).to_bytes(2, "big")
    if len(value) >= 0x8000:
        length = b"\x80\x04" + len(value).to_bytes(4, "big")
    return bytes((0x1C, record, number)) + length + value
