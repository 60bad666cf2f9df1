"""
What a change of a photo's metadata means for the fields of its three standards, and reading them.

Tags and people share the keywords, which is where every other program looks for both; people
stand in a field of their own besides. IPTC is written into JPEG only: elsewhere hardly a
program reads it.
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from qmd.engine_text import engine_text
from qmd.errors import ExifToolError, PhotoError
from qmd.files.photos.exiftool import Turn, escape
from qmd.parse.photo.source import PhotoKind
from qmd.parse.photo.standards import Iptc, iptc_in_utf8
from qmd.values import PhotoChange
from qmd.values.photos import PhotoText

SUBJECT = "XMP-dc:Subject"
KEYWORDS = "IPTC:Keywords"
PEOPLE = "XMP-iptcExt:PersonInImage"
DESCRIPTIONS = ("XMP-dc:Description", "IPTC:Caption-Abstract", "IFD0:ImageDescription")
LOCATIONS = ("XMP-iptcCore:Location", "IPTC:Sub-location")
_TEXT_FIELDS: Mapping[PhotoText, tuple[str, ...]] = {
    "description": DESCRIPTIONS,
    "location": LOCATIONS,
}
_TOOLKIT = "XMP-x:XMPToolkit"
_CHARACTERS = "IPTC:CodedCharacterSet"

#: Fields that describe the other fields.
TECHNICAL = (_TOOLKIT, _CHARACTERS)
#: All that is read of a photo before and after it is written.
FIELDS = (SUBJECT, KEYWORDS, PEOPLE, *DESCRIPTIONS, *LOCATIONS, *TECHNICAL)

#: Without the language, exiftool would throw the description in other languages away.
_WRITTEN_AS = {DESCRIPTIONS[0]: f"{DESCRIPTIONS[0]}-x-default"}

#: In bytes. Old readers of IPTC may cut what is longer; exiftool writes it only with -m.
_IPTC_BYTES = {KEYWORDS: 64, "IPTC:Caption-Abstract": 2000, "IPTC:Sub-location": 32}

#: Field → its values; a text has one, and none if it is not there.
FieldValues = Mapping[str, tuple[str, ...]]

MAX_NAMES = 50
MAX_NAME = 100
MAX_DESCRIPTION = 10_000
MAX_LOCATION = 1_000

# What XML cannot hold: most control characters, lone surrogates, U+FFFE and U+FFFF.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


@dataclass(frozen=True, slots=True)
class MetadataPlan:
    """
    ``target``: what these fields are to hold, be it what they hold already. ``kept``: the texts
    that were to be added and stay as they are, as in `PhotoWritten`.
    """

    target: FieldValues
    kept: tuple[str, ...] = ()

    def changed(self, present: FieldValues) -> dict[str, tuple[str, ...]]:
        """The fields that do not hold what they are to hold."""
        return {
            field: values
            for field, values in self.target.items()
            if values != present.get(field, ())
        }


def check(change: PhotoChange) -> None:
    """Raises PhotoError: A name is blank; a value is too long, or metadata cannot hold it."""
    for name, values in (("tags", change.tags), ("people", change.people)):
        if values is not None and len(values) > MAX_NAMES:
            raise _invalid(f"{name} has {len(values)} entries; the limit is {MAX_NAMES}")
        for value in values or ():
            if not value.strip():
                raise _invalid(f"an entry of {name} is blank")
            _check_text(f"an entry of {name}", value, MAX_NAME)
    _check_text("description", change.description, MAX_DESCRIPTION)
    _check_text("location", change.location, MAX_LOCATION)


def _check_text(name: str, value: str | None, limit: int) -> None:
    if value is None:
        return
    if len(value) > limit:
        raise _invalid(f"{name} has {len(value):,} characters; the limit is {limit:,}")
    illegal = _ILLEGAL.search(value)
    if illegal is not None:
        raise _invalid(f"{name} holds the character U+{ord(illegal[0]):04X}, which XML forbids")


def _invalid(reason: str) -> PhotoError:
    return PhotoError(
        "invalid_metadata",
        engine_text("Invalid metadata: {reason}.", reason=reason),
        reason=reason,
        hint=f"At most {MAX_NAMES} tags and {MAX_NAMES} people of {MAX_NAME} characters, none "
        f"blank; a description of {MAX_DESCRIPTION:,}, a location of {MAX_LOCATION:,}.",
    )


def keywords(present: FieldValues, kind: PhotoKind) -> tuple[str, ...]:
    """All keywords, people included."""
    iptc = present.get(KEYWORDS, ()) if kind == "JPG" else ()
    return _united(present.get(SUBJECT, ()), iptc)


def plan(
    present: FieldValues, change: PhotoChange, kind: PhotoKind, *, overwrite: bool
) -> MetadataPlan:
    """
    What the fields of a photo must hold.

    Args:
        overwrite: New values take the place of old ones; an empty list and a blank text empty a
            field. Else lists are united, in order, and a description or location that is there
            stays.
    """
    texts, kept = _planned_texts(present, change, overwrite)
    target = _planned_names(present, change, kind, overwrite) | texts
    if kind != "JPG":
        target = {f: values for f, values in target.items() if not f.startswith("IPTC:")}
    return MetadataPlan(target, kept)


def _planned_names(
    present: FieldValues, change: PhotoChange, kind: PhotoKind, overwrite: bool
) -> dict[str, tuple[str, ...]]:
    """The fields that hold tags and people."""
    if change.tags is None and change.people is None:
        return {}
    old_people = _united(present.get(PEOPLE, ()))
    old_tags = tuple(name for name in keywords(present, kind) if name not in old_people)
    tags = _changed_list(old_tags, change.tags, overwrite)
    people = _changed_list(old_people, change.people, overwrite)
    # People come last, so that writing the same again changes no order.
    all_keywords = _united((name for name in tags if name not in people), people)
    target = {SUBJECT: all_keywords, KEYWORDS: all_keywords}
    return target if change.people is None else {**target, PEOPLE: people}


def _planned_texts(
    present: FieldValues, change: PhotoChange, overwrite: bool
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The fields that hold description and location, and which of both stays as it is."""
    target: dict[str, tuple[str, ...]] = {}
    kept: list[str] = []
    texts: tuple[tuple[PhotoText, str | None], ...] = (
        ("description", change.description),
        ("location", change.location),
    )
    for name, value in texts:
        if value is None:
            continue
        fields = _TEXT_FIELDS[name]
        if not overwrite and any("".join(present.get(field, ())).strip() for field in fields):
            kept.append(name)
        else:
            target |= dict.fromkeys(fields, (value,) if value.strip() else ())
    return target, tuple(kept)


def _changed_list(
    old: tuple[str, ...], new: tuple[str, ...] | None, overwrite: bool
) -> tuple[str, ...]:
    if new is None:
        return old
    return _united(new) if overwrite else _united(old, new)


def _united(*lists: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def arguments(
    changed: FieldValues, present: FieldValues, *, iptc_from: str | None = None
) -> Sequence[str]:
    """
    exiftool's arguments that make the fields hold these values.

    Args:
        iptc_from: The file of `put_iptc_in_utf8`: then the other texts of IPTC become UTF-8 as
            well.
    """
    options: list[str] = []
    iptc = [field for field in changed if field.startswith("IPTC:")]
    if iptc_from is not None:
        options += ["-tagsFromFile", iptc_from, "-IPTC:all", *(f"--{f}" for f in iptc)]
    if iptc_from is not None or (
        any(changed[field] for field in iptc) and present.get(_CHARACTERS) != ("UTF8",)
    ):
        options.append(f"-{_CHARACTERS}=UTF8")
    if any(len(value.encode()) > _IPTC_BYTES[field] for field in iptc for value in changed[field]):
        options.append("-m")
    options += _assignments(changed)
    if any(field.startswith("XMP") for field in changed):
        # exiftool would sign what it writes.
        toolkit = "".join(present.get(_TOOLKIT, ()))
        options.append(f"-{_TOOLKIT}={escape(toolkit)}")
    return options


def _assignments(changed: FieldValues) -> list[str]:
    """``-FIELD=VALUE`` for each value; a field without any is emptied."""
    return [
        f"-{_WRITTEN_AS.get(field, field)}={escape(value)}"
        for field, values in changed.items()
        for value in values or ("",)
    ]


def put_iptc_in_utf8(turn: Turn, iptc: Iptc, records: bytes) -> str | None:
    """
    Give exiftool the IPTC of a photo in UTF-8, if it is in an encoding of before.

    exiftool takes all older encodings for Western European, and so garbles Chinese.

    Returns:
        The name of the file; None if there is no need for it.
    """
    if iptc.encoding in ("ascii", "utf-8"):
        return None
    data = iptc_in_utf8(records)
    # The smallest file in which exiftool finds it, a TIFF of one field.
    head = struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x83BB, 7, len(data), 26, 0)
    turn.put("iptc.jpg", head + data)
    return "iptc.jpg"


def is_foreign(tag: str) -> bool:
    """Whether a tag is none of ours, nor says where in the file something lies, and how much."""
    return (
        tag not in FIELDS
        and not tag.startswith(("ExifTool:", "System:", "File:", "Composite:"))
        and not tag.endswith(("Offset", "Offsets", "Start", "Pointer", "Digest", "MediaDataSize"))
    )


def read_fields(turn: Turn, photo: str, encoding: list[str], translated: str | None) -> FieldValues:
    """The fields of a photo as exiftool reads them. Raises ExifToolError."""
    fields = [f"-{field}" for field in FIELDS]
    tags = read_tags(turn.read(photo, [*encoding, *fields]))
    tags = with_translated_iptc(tags, turn, fields, translated)
    return {field: values for field, values in tags.items() if field in FIELDS}


def with_translated_iptc(
    tags: dict[str, tuple[str, ...]], turn: Turn, arguments: list[str], translated: str | None
) -> dict[str, tuple[str, ...]]:
    """``tags`` with those of IPTC as ``translated`` has them. Raises ExifToolError."""
    if translated is None:
        return tags
    iptc = read_tags(turn.read(translated, arguments))
    return {tag: values for tag, values in tags.items() if not tag.startswith("IPTC:")} | {
        tag: values for tag, values in iptc.items() if tag.startswith("IPTC:")
    }


def read_tags(out: bytes) -> dict[str, tuple[str, ...]]:
    """exiftool's RDF/XML: ``group:tag`` → its values, the first place counting."""
    try:
        # exiftool's own output: no declarations, and control characters in base64.
        root = ElementTree.fromstring(out.replace(b"\r", b"&#13;"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise ExifToolError("refused", "exiftool's answer cannot be read") from error
    tags: dict[str, tuple[str, ...]] = {}
    for element in (each for description in root for each in description):
        namespace, _, name = element.tag.rpartition("}")
        field = f"{namespace.split('/')[-3]}:{name}"
        if field not in tags:
            items = list(element.iter(f"{_RDF}li")) or [element]
            tags[field] = tuple(text for text in map(_text, items) if text)
    return tags


def _text(element: ElementTree.Element) -> str:
    text = element.text or ""
    if element.get(f"{_RDF}datatype", "").endswith("base64Binary"):
        return binascii.a2b_base64(text).decode("utf-8", "replace")
    return text


def differing_fields(target: FieldValues, before: FieldValues, now: FieldValues) -> str:
    """Which fields are not as they should be, for people."""
    wrong = [
        field
        for field in FIELDS
        if field not in TECHNICAL and now.get(field, ()) != target.get(field, before.get(field, ()))
    ]
    return ", ".join(wrong)
