"""Reads the three standards of metadata in photos: EXIF, IPTC and XMP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.parsers import expat

from qmd.errors import DecodeError
from qmd.parse.decode import decode

# --- encodings of texts -----------------------------------------------------------------

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


# --- EXIF -------------------------------------------------------------------------------

_MAX_ENTRIES = 2000
_MAX_TEXT = 1024 * 1024
_EXIF_DIRECTORY = 0x8769
_EXIF_TEXTS = {
    0x010E: "description",
    0x010F: "make",
    0x0110: "model",
    0x9003: "original",
    0x9004: "digitized",
    0x9010: "offset",
    0x9011: "offset_original",
    0x9012: "offset_digitized",
}
_ASCII, _LONG, _EXIF_UTF8 = 2, 4, 129


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
            (name := _EXIF_TEXTS.get(tag)) is not None
            and name not in texts  # the first counts, and a thousand more are not decoded
            and kind in (_ASCII, _EXIF_UTF8)
            and count <= _MAX_TEXT
        ):
            place = entry + 8 if count <= 4 else _int(tiff, entry + 8, 4, order)
            raw = tiff[place : place + count].partition(b"\0")[0]
            texts[name] = decoded(raw)
    return below


# --- IPTC -------------------------------------------------------------------------------

_MAX_RECORDS = 10_000
_IPTC_UTF8 = b"\x1b%G"
_CHARACTERS = (1, 90)
_IPTC_TEXTS = {
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
    ``texts`` has the fields by the names of `_IPTC_TEXTS`, as they are written: ``date`` like
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
        elif record == 2 and number in _IPTC_TEXTS:
            texts.setdefault(_IPTC_TEXTS[number], value)
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
    fields = [_field(*_CHARACTERS, _IPTC_UTF8)]
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
        if (record, number) == _CHARACTERS and value == _IPTC_UTF8:
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


# --- XMP --------------------------------------------------------------------------------
# What is read are the values of RDF properties, single values and lists. Entities cannot be
# declared, so no document expands. Of a document that is not well-formed, what comes before the
# mistake is read.
#
# Prefixes are resolved here and not by expat, which would write the full name of a namespace before
# each name with its prefix: 100 KB for each of 20,000 elements.

_LANGUAGE = "xml:lang"
_CONTAINERS = ("rdf:Bag", "rdf:Seq", "rdf:Alt")

_NAMESPACES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/": "iptcCore",
    "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": "iptcExt",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://ns.adobe.com/tiff/1.0/": "tiff",
    "http://ns.adobe.com/xap/1.0/": "xmp",
}
_NAMES = frozenset(
    (
        *("dc:subject", "dc:description", "dc:title", "iptcExt:PersonInImage"),
        *("iptcCore:Location", "photoshop:City", "photoshop:State", "photoshop:Country"),
        *("photoshop:DateCreated", "exif:DateTimeOriginal", "xmp:CreateDate"),
        *("tiff:Make", "tiff:Model"),
    )
)
_MAX_DEPTH = 100
_MAX_ELEMENTS = 200_000
_MAX_VALUES = 10_000


class _XmpRefused(Exception):
    """The document is not what XMP can be."""


@dataclass(slots=True)
class _XmpReader:
    """
    The state of one pass. ``path`` holds the open elements from rdf:RDF on: a description, a
    property, a container, an item. ``prefixes`` are those of namespaces known here, by the
    prefixes in the document; ``scopes`` what they stood for outside each open element.
    """

    values: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    prefixes: dict[str, str | None] = field(default_factory=lambda: {"xml": "xml"})
    scopes: list[list[tuple[str, str | None]]] = field(default_factory=list)
    elements: int = 0
    above: int = 0
    name: str | None = None
    language: str = ""
    text: list[str] = field(default_factory=list)
    count: int = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > _MAX_ELEMENTS:
            raise _XmpRefused("has too many elements")
        self._declare(attributes)
        tag = self._resolved(name)
        if not self.path and tag != "rdf:RDF":
            self.above += 1
            if self.above > _MAX_DEPTH:
                raise _XmpRefused("is nested too deeply")
            return
        self.path.append(tag)
        depth = len(self.path)
        if depth > _MAX_DEPTH:
            raise _XmpRefused("is nested too deeply")
        if depth == 2:
            self._add_attributes(attributes)
        elif depth == 3:
            self.name = tag if tag in _NAMES else None
            self.language = ""
            self.text = []
        elif depth == 5 and tag == "rdf:li":
            self.language = attributes.get(_LANGUAGE, "")
            self.text = []

    def _add_attributes(self, attributes: dict[str, str]) -> None:
        """The properties that a description has as attributes."""
        for key, value in attributes.items():
            attribute = self._resolved(key)
            if ":" in key and attribute in _NAMES:  # the default namespace holds for elements
                self._add(attribute, "", value)

    def end(self, _: str) -> None:
        if self.path:
            self._leave(self.path[-1])
        for prefix, before in reversed(self.scopes.pop()):
            self.prefixes[prefix] = before

    def _leave(self, tag: str) -> None:
        depth = len(self.path)
        if self.name is not None:
            in_list = depth == 5 and tag == "rdf:li" and self.path[3] in _CONTAINERS
            if in_list or (depth == 3 and "".join(self.text).strip()):
                self._add(self.name, self.language, "".join(self.text))
                self.text = []
            if depth == 3:
                self.name = None
            elif depth == 4:
                self.text = []  # the white space around the list
        self.path.pop()

    def _declare(self, attributes: dict[str, str]) -> None:
        hidden = []
        for name, value in attributes.items():
            if name == "xmlns" or name.startswith("xmlns:"):
                prefix = name.partition(":")[2]
                hidden.append((prefix, self.prefixes.get(prefix)))
                self.prefixes[prefix] = _NAMESPACES.get(value)
        self.scopes.append(hidden)

    def _resolved(self, name: str) -> str:
        """A name with the prefix that `_NAMESPACES` gives its namespace; else without prefix."""
        prefix, _, local = name.rpartition(":")
        usual_prefix = self.prefixes.get(prefix)
        return f"{usual_prefix}:{local}" if usual_prefix else local

    def characters(self, text: str) -> None:
        if self.name is not None and len(self.path) in (3, 5):
            self.text.append(text)

    def _add(self, name: str, language: str, value: str) -> None:
        self.count += 1
        if self.count > _MAX_VALUES:
            raise _XmpRefused("has too many values")
        if value.strip():
            self.values.setdefault(name, []).append((language, value))


def read_xmp(packet: bytes) -> tuple[Mapping[str, list[tuple[str, str]]], str | None]:
    """
    Property, like ``dc:subject`` → its values with their languages ("" mostly), and what is
    wrong with the packet, as the end of a sentence.
    """
    reader = _XmpReader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = _refuse_declarations
    problem = None
    try:
        wide = packet.startswith((b"\xff\xfe", b"\xfe\xff"))
        parser.Parse(packet if wide else packet.strip(b"\0 \t\r\n"), True)
    except _XmpRefused as refused:
        problem = str(refused)
    except expat.ExpatError as error:
        problem = f"is not well-formed (line {error.lineno})"
    except (ValueError, LookupError):  # an encoding that Python does not know
        problem = "has an unknown encoding"
    return reader.values, problem


def _refuse_declarations(*_: object) -> None:
    raise _XmpRefused("declares a document type, which XMP never does")
