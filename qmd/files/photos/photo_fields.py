"""The metadata fields of a photo as exiftool reads them, in values that can be compared."""

from __future__ import annotations

import binascii
import struct
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from xml.etree import ElementTree

from qmd.errors import ExifToolError
from qmd.files.photos import photo_plan
from qmd.files.photos.exiftool import Turn
from qmd.files.photos.photo_plan import FIELDS, FieldValues
from qmd.parse.photo.iptc import Iptc, iptc_in_utf8
from qmd.parse.photo.source import PhotoKind

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def iptc_in_utf8_file(
    turn: Turn, iptc: Iptc, records: bytes
) -> AbstractContextManager[Path] | nullcontext[None]:
    """
    A file with the IPTC of a photo in UTF-8, if it is in an encoding of before.

    exiftool takes all older encodings for Western European, and so garbles Chinese.
    """
    if iptc.encoding in ("ascii", "utf-8"):
        return nullcontext()
    data = iptc_in_utf8(records)
    # The smallest file in which exiftool finds it, a TIFF of one field.
    head = struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x83BB, 7, len(data), 26, 0)
    return turn.lend(head + data)


def is_foreign(tag: str) -> bool:
    """Whether a tag is none of ours, nor says where in the file something lies, and how much."""
    return (
        tag not in FIELDS
        and not tag.startswith(("ExifTool:", "System:", "File:", "Composite:"))
        and not tag.endswith(("Offset", "Offsets", "Start", "Pointer", "Digest", "MediaDataSize"))
    )


def read_fields(
    turn: Turn, photo: Path, kind: PhotoKind, encoding: list[str], translated: Path | None
) -> FieldValues:
    """The fields of a photo as exiftool reads them. Raises ExifToolError."""
    fields = [f"-{field}" for field in FIELDS]
    tags = read_tags(turn.read(photo, kind, [*encoding, *fields]))
    tags = with_translated_iptc(tags, turn, fields, translated)
    return {field: values for field, values in tags.items() if field in FIELDS}


def with_translated_iptc(
    tags: dict[str, tuple[str, ...]], turn: Turn, arguments: list[str], translated: Path | None
) -> dict[str, tuple[str, ...]]:
    """``tags`` with those of IPTC as ``translated`` has them. Raises ExifToolError."""
    if translated is None:
        return tags
    iptc = read_tags(turn.read(translated, "JPG", arguments))
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
        if field not in photo_plan.TECHNICAL
        and now.get(field, ()) != target.get(field, before.get(field, ()))
    ]
    return ", ".join(wrong)
