"""Reads and writes the records of IPTC IIM, the metadata of press photos from before XMP."""

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
    ``texts`` has the fields by the names of `_TEXTS`, as they are written: ``date`` like
    ``20240714``.

    ``encoding`` is that of all texts, also of fields without a name here: UTF-8 if the records
    declare it (``marked``), else the most likely one; ``ascii`` where it makes no difference.
    """

    keywords: tuple[str, ...]
    texts: Mapping[str, str]
    encoding: str
    marked: bool

    def text(self, name: str) -> str:
        return self.texts.get(name, "")


def read_iptc(records: bytes) -> Iptc:
    """Read the fields up to the first that is damaged."""
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
        keywords=tuple(text(keyword) for keyword in keywords),
        texts={name: text(value) for name, value in texts.items()},
        encoding=encoding,
        marked=marked,
    )


def iptc_in_utf8(records: bytes) -> bytes:
    """The same records with all texts in UTF-8, declared as UTF-8."""
    _, encoding = _encoding(records)
    guess = Guesser().decoded
    fields = [_field(*_CHARACTERS, _UTF8)]
    for record, number, value in _fields(records):
        if (record, number) == _CHARACTERS:
            continue
        is_text = record == 2 and number not in _BINARY
        fields.append(
            _field(
                record, number, decoded_by(value, encoding, guess).encode() if is_text else value
            )
        )
    return b"".join(fields)


def _encoding(records: bytes) -> tuple[bool, str]:
    """Whether the records declare their texts as UTF-8, and the encoding of the texts."""
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
