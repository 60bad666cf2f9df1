"""Merges the metadata of a photo into one value, and makes a document of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from qmd.errors import NotAPhotoError
from qmd.parse.chunk import chunk
from qmd.parse.convert.blocks import inert_lines
from qmd.parse.converted import limit_warnings
from qmd.parse.document import MAX_TITLE, find_description
from qmd.parse.markdown import outline
from qmd.parse.photo import containers
from qmd.parse.photo.source import (
    MetadataBlocks,
    MeteredSource,
    PhotoKind,
    PhotoSource,
    TooMuchMetadataError,
    kind_of,
    kind_of_name,
)
from qmd.parse.photo.standards import Exif, Iptc, read_exif, read_iptc, read_xmp
from qmd.values import ParsedDocument, PhotoMetadata
from qmd.values.pictures import PictureText

_READERS = {
    "JPG": containers.jpeg_blocks,
    "PNG": containers.png_blocks,
    "HEIC": containers.heic_blocks,
}

_DATE = re.compile(
    r"(\d{4})[:\-./]?(\d\d)[:\-./]?(\d\d)"
    r"(?:[T ]?(\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?\s*(Z|[+-]\d\d:?\d\d)?\s*"
)
_OFFSET = re.compile(r"\s*(Z|[+-]\d\d:\d\d)\s*")


def read_kind(source: PhotoSource, path: str) -> PhotoKind:
    """
    The format of a photo; the suffix of its name must be one of that format.

    Raises:
        NotAPhotoError: It is in another format, or in none that is known here.
    """
    expected = kind_of_name(path)
    kind = kind_of(source.at(0, 64))
    if kind is None or kind != expected:
        actual = f"It is a {kind} image" if kind else "It is no image that qmd knows"
        name = path.rpartition("/")[2].rpartition(".")[2]
        raise NotAPhotoError(
            f"{actual}, although its name ends in .{name}.",
            hint="Give it the suffix of its format (.jpg, .png, .heic), or exclude it.",
        )
    return kind


def read_blocks(source: PhotoSource, path: str) -> MetadataBlocks:
    """
    The blocks of metadata in the container, up to the limits of `MeteredSource`.

    Raises:
        NotAPhotoError: See `read_kind`.
    """
    kind = read_kind(source, path)
    blocks = MetadataBlocks(kind)
    try:
        _READERS[kind](MeteredSource(source), blocks)
    except TooMuchMetadataError as error:
        blocks.warnings.append(str(error))
    return blocks


def read_metadata(source: PhotoSource, path: str) -> PhotoMetadata:
    """
    Read the metadata of a photo; only headers are read.

    Where the standards differ, XMP wins over IPTC, and IPTC over EXIF, because few programs
    update all three. The keywords of XMP and IPTC are merged.

    Raises:
        NotAPhotoError: See `read_kind`.
    """
    blocks = read_blocks(source, path)
    warnings = list(blocks.warnings)
    exif = read_exif(blocks.exif) if blocks.exif else Exif()
    if exif is None:
        warnings.append("The EXIF is damaged and was not read.")
        exif = Exif()
    iptc = read_iptc(blocks.iptc or b"")
    xmp = _Xmp(blocks.xmp, warnings)
    people = _distinct(xmp.values("iptcExt:PersonInImage"))
    is_person = frozenset(people).__contains__
    keywords = _distinct([*xmp.values("dc:subject"), *iptc.keywords])
    return PhotoMetadata(
        kind=blocks.kind,
        title=_first(xmp.text("dc:title"), iptc.text("title"), blocks.texts.get("Title", "")),
        tags=tuple(keyword for keyword in keywords if not is_person(keyword)),
        people=people,
        description=_first(
            xmp.text("dc:description"),
            iptc.text("description"),
            exif.description,
            blocks.texts.get("Description", ""),
        ),
        location=_first(xmp.text("iptcCore:Location"), iptc.text("location")),
        place=_distinct(
            _first(xmp.text(f"photoshop:{name}"), iptc.text(name.lower())) or ""
            for name in ("City", "State", "Country")
        ),
        date=_date(exif, iptc, xmp),
        camera=_camera(exif.make or xmp.text("tiff:Make"), exif.model or xmp.text("tiff:Model")),
        warnings=limit_warnings(warnings),
    )


class _Xmp:
    """The properties of all XMP packets of a photo; what is wrong with one is a warning."""

    def __init__(self, packets: Iterable[bytes], warnings: list[str]) -> None:
        self._properties: dict[str, list[tuple[str, str]]] = {}  # (language, value)
        for packet in packets:
            properties, problem = read_xmp(packet)
            for name, values in properties.items():
                self._properties.setdefault(name, []).extend(values)
            if problem is not None:
                warnings.append(f"The XMP {problem}; what could be read of it was.")

    def values(self, name: str) -> list[str]:
        return [value for _, value in self._properties.get(name, ())]

    def text(self, name: str) -> str:
        """The value in the default language, else the first; "" if there is none."""
        for language, value in self._properties.get(name, ()):
            if language.lower() == "x-default":
                return value
        return next(iter(self.values(name)), "")


def _first(*texts: str) -> str | None:
    """The first text that is not blank."""
    return next((text for text in texts if text.strip()), None)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name.strip()))


def _date(exif: Exif, iptc: Iptc, xmp: _Xmp) -> str | None:
    """When the photo was taken, else when it was scanned; a camera without a clock writes 0."""
    for written, offset in (
        (exif.original, exif.offset_original or exif.offset),
        (xmp.text("exif:DateTimeOriginal"), ""),
        (exif.digitized, exif.offset_digitized or exif.offset),
        (iptc.text("date") + iptc.text("time"), ""),
    ):
        date = _iso(written)
        if date is not None:
            match = _OFFSET.fullmatch(offset)
            with_time = len(date) == len("2024-07-14T18:30:00")
            return f"{date}{match[1].replace('Z', '+00:00')}" if match and with_time else date
    return _iso(xmp.text("photoshop:DateCreated")) or _iso(xmp.text("xmp:CreateDate"))


def _iso(written: str) -> str | None:
    match = _DATE.fullmatch(written.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, offset = match.groups()
    if hour is None:
        text = f"{year}-{month}-{day}"
    else:
        zone = "+00:00" if offset == "Z" else offset or ""
        zone = zone if ":" in zone or not zone else f"{zone[:3]}:{zone[3:]}"
        text = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone}"
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


def _camera(make: str, model: str) -> str | None:
    """Many models begin with their maker's name already."""
    make, model = " ".join(make.split()), " ".join(model.split())
    if make and model and model.casefold().startswith(make.split()[0].casefold()):
        return model
    return " ".join(each for each in (make, model) if each) or None


# --- the document -----------------------------------------------------------------------
# It is a text with the metadata, whose tags are the photo's keywords and people. Emoji label the
# lines, because the full-text index leaves them out: a search for the word "camera" must not match
# every photo.

_MAX_DESCRIPTION = 100_000


def parse_photo(
    path: str, source: PhotoSource, texts: Mapping[int, PictureText] | None = None
) -> ParsedDocument:
    """
    Read one photo.

    Args:
        path: The file's path with ``/``; its suffix must be that of the format, and its name
            is the last resort for a title.
        texts: What was read from the photo, as page 1; it stands below the metadata, as a quote.

    Raises:
        NotAPhotoError: It is in another format, or in none that is known here.
    """
    photo = read_metadata(source, path)
    name = path.rpartition("/")[2]
    title = (
        _one_line(photo.title or "")[:MAX_TITLE].rstrip()
        or _one_line(name.rpartition(".")[0])
        or name
    )
    tags = _distinct_lines(photo.tags)
    people = _distinct_lines(photo.people)
    text = _text(title, photo, tags, people) + _quote((texts or {}).get(1))
    document = stored_photo(
        text,
        title=title,
        description=find_description({"description": photo.description}),
        tags=_distinct_lines(tuple(each.lstrip("#") for each in (*tags, *people))),
        date=photo.date,
        properties=_properties(photo, tags, people),
        warnings=photo.warnings,
        title_source="frontmatter" if photo.title else "filename",
    )
    return replace(document, pictures=(1,))


def stored_photo(
    text: str,
    *,
    title: str,
    description: str,
    tags: Sequence[str],
    date: str | None,
    properties: Mapping[str, object],
    warnings: Sequence[str],
    title_source: Literal["frontmatter", "filename"] = "filename",
) -> ParsedDocument:
    """A photo as `parse_photo` has read it, of what the database holds, without the file."""
    structure = outline(text, 0)
    return ParsedDocument(
        text=text,
        encoding="utf-8",
        title=title,
        title_source=title_source,
        description=description,
        body_start=0,
        headings=structure.headings,
        tags=tuple(tags),
        aliases=(),
        date=date,
        properties=properties,
        links=(),
        chunks=chunk(text, structure),
        warnings=tuple(warnings),
    )


def _text(title: str, photo: PhotoMetadata, tags: tuple[str, ...], people: tuple[str, ...]) -> str:
    description = (photo.description or "").replace("\r\n", "\n").replace("\r", "\n").strip()
    place = _distinct_lines((photo.location or "", *photo.place))
    lines = [
        ("🏷", ", ".join(tags)),
        ("👤", ", ".join(people)),
        ("📍", ", ".join(place)),
        ("📅", (photo.date or "").replace("T", " ")),
        ("📷", _one_line(photo.camera or "")),
    ]
    facts = "\n".join(f"- {sign} {value}" for sign, value in lines if value)
    paragraphs = [f"# {title}", description[:_MAX_DESCRIPTION], facts]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def _quote(read: PictureText | None) -> str:
    if read is None or not read.lines:
        return ""
    text = inert_lines("\n".join(_one_line(line.text) for line in read.lines))
    return "\n" + "".join(f"> {line}\n" for line in text.splitlines())


def _properties(
    photo: PhotoMetadata, tags: tuple[str, ...], people: tuple[str, ...]
) -> dict[str, Any]:
    properties = {
        "tags": list(tags),
        "people": list(people),
        "location": photo.location,
        "date": photo.date,
        "camera": photo.camera,
    }
    return {"kind": photo.kind, **{name: value for name, value in properties.items() if value}}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _distinct_lines(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once (ignoring case) and on one line."""
    seen: dict[str, str] = {}
    for name in names:
        shown = _one_line(name)
        if shown:
            seen.setdefault(shown.casefold(), shown)
    return tuple(seen.values())
