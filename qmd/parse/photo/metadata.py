"""A photo's metadata as one value, whichever of its three standards says it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from qmd.errors import NotAPhotoError
from qmd.parse.photo import heic, jpeg, png
from qmd.parse.photo.exif import Exif, read_exif
from qmd.parse.photo.iptc import Iptc, read_iptc
from qmd.parse.photo.source import (
    MetadataBlocks,
    MeteredSource,
    PhotoKind,
    PhotoSource,
    TooMuchMetadataError,
    kind_of,
    kind_of_name,
)
from qmd.parse.photo.xmp import read_xmp
from qmd.parse.warnings import limit_warnings
from qmd.values import PhotoMetadata

_READERS = {"JPG": jpeg.read_blocks, "PNG": png.read_blocks, "HEIC": heic.read_blocks}

_DATE = re.compile(
    r"(\d{4})[:\-./]?(\d\d)[:\-./]?(\d\d)"
    r"(?:[T ]?(\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?\s*(Z|[+-]\d\d:?\d\d)?\s*"
)
_OFFSET = re.compile(r"\s*(Z|[+-]\d\d:\d\d)\s*")


def read_kind(source: PhotoSource, path: str) -> PhotoKind:
    """
    The format of a photo, which its name must promise.

    Raises:
        NotAPhotoError: It is in another format, or in none that is known here.
    """
    expected = kind_of_name(path)
    kind = kind_of(source.at(0, 64))
    if kind is None or kind != expected:
        found = f"It is a {kind} image" if kind else "It is no image that qmd knows"
        name = path.rpartition("/")[2].rpartition(".")[2]
        raise NotAPhotoError(
            f"{found}, although its name ends in .{name}.",
            hint="Give it the suffix of its format (.jpg, .png, .heic), or exclude it.",
        )
    return kind


def read_blocks(source: PhotoSource, path: str) -> MetadataBlocks:
    """
    The metadata as it lies in the container, as far as the limits of `MeteredSource` go.

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
    What a photo says about itself; reads only headers.

    XMP counts before IPTC, and IPTC before EXIF, for few programs keep all three in step;
    keywords are united.

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
    xmp: dict[str, list[tuple[str, str]]] = {}
    for packet in blocks.xmp:
        properties, problem = read_xmp(packet)
        for name, values in properties.items():
            xmp.setdefault(name, []).extend(values)
        if problem is not None:
            warnings.append(f"The XMP {problem}; what could be read of it was.")

    def text(name: str, *others: str) -> str | None:
        return _first(_default(xmp.get(name, [])), *others)

    people = _distinct(value for _, value in xmp.get("iptcExt:PersonInImage", []))
    is_person = frozenset(people).__contains__
    keywords = _distinct([*(value for _, value in xmp.get("dc:subject", [])), *iptc.keywords])
    return PhotoMetadata(
        kind=blocks.kind,
        title=text("dc:title", iptc.texts.get("title", ""), blocks.texts.get("Title", "")),
        tags=tuple(each for each in keywords if not is_person(each)),
        people=people,
        description=text(
            "dc:description",
            iptc.texts.get("description", ""),
            exif.description,
            blocks.texts.get("Description", ""),
        ),
        location=text("iptcCore:Location", iptc.texts.get("location", "")),
        place=_distinct(
            found
            for name, old in (("City", "city"), ("State", "state"), ("Country", "country"))
            if (found := text(f"photoshop:{name}", iptc.texts.get(old, "")))
        ),
        date=_date(exif, iptc, _default(xmp.get("exif:DateTimeOriginal", [])))
        or _iso(text("photoshop:DateCreated") or "")
        or _iso(text("xmp:CreateDate") or ""),
        camera=_camera(
            exif.make or _default(xmp.get("tiff:Make", [])),
            exif.model or _default(xmp.get("tiff:Model", [])),
        ),
        warnings=limit_warnings(warnings),
    )


def _first(*texts: str) -> str | None:
    """The first that is not blank."""
    return next((each for each in texts if each.strip()), None)


def _default(values: list[tuple[str, str]]) -> str:
    """Of a text in several languages, the one for all others."""
    for language, value in values:
        if language.lower() == "x-default":
            return value
    return values[0][1] if values else ""


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name.strip()))


def _date(exif: Exif, iptc: Iptc, xmp: str) -> str | None:
    """When the photo was taken, or else when it was scanned; a camera without a clock says 0."""
    for written, offset in (
        (exif.original, exif.offset_original or exif.offset),
        (xmp, ""),
        (exif.digitized, exif.offset_digitized or exif.offset),
        (iptc.texts.get("date", "") + iptc.texts.get("time", ""), ""),
    ):
        date = _iso(written)
        if date is not None:
            match = _OFFSET.fullmatch(offset)
            with_time = len(date) == len("2024-07-14T18:30:00")
            return f"{date}{match[1].replace('Z', '+00:00')}" if match and with_time else date
    return None


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
