"""The metadata items of a HEIC file: an ISO base media file whose ``meta`` box lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qmd.parse.photo.source import (
    MAX_BLOCK,
    MetadataBlocks,
    MeteredSource,
    PhotoSource,
    TooMuchMetadataError,
)

_MAX_BOXES = 1024
_MAX_ITEMS = 100_000
_MAX_EXTENTS = 64
_MAX_PACKETS = 16  # items of XMP that are read
_XMP_TYPE = b"application/rdf+xml"


class _Damaged(Exception):
    """A box says what cannot be."""


@dataclass(slots=True)
class _MetaItem:
    """Where an item's bytes are: ``extents`` are (offset, length), in the file or in ``idat``."""

    in_idat: bool = False
    extents: list[tuple[int, int]] = field(default_factory=list)


class _Cursor:
    """Numbers of a box, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, size: int) -> int:
        end = self.at + size
        if end > len(self.data):
            raise _Damaged
        value = int.from_bytes(self.data[self.at : end], "big")
        self.at = end
        return value

    def raw(self, size: int) -> bytes:
        self.number(size)
        return self.data[self.at - size : self.at]

    def text(self) -> bytes:
        """Up to a NUL, or to the end."""
        end = self.data.find(b"\0", self.at)
        end = len(self.data) if end < 0 else end
        value = self.data[self.at : end]
        self.at = end + 1
        return value


def read_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
    """EXIF and XMP."""
    for kind, offset, length in _boxes(source):
        if kind == b"meta":
            if length > MAX_BLOCK:
                blocks.warnings.append(f"The list of items has {length:,} bytes: not read.")
                break
            try:
                _read_meta(source, source.at(offset, length), blocks)
            except _Damaged:
                blocks.warnings.append("The list of items is damaged; metadata may be missing.")
            break


def image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
    """
    Where the items that are no metadata are, in the order of their numbers.

    None if the last box does not end where the file does, an item lies beyond that, or there
    are more items than a photo has.
    """
    metered = MeteredSource(source)
    boxes = list(_boxes(source))
    if not boxes or boxes[-1][1] + boxes[-1][2] != source.size:
        return None
    try:
        meta = next((metered.at(at, length) for kind, at, length in boxes if kind == b"meta"), b"")
        children = dict(_children(meta, 4))
        texts = dict(_kinds(children.get(b"iinf", b""), metered))
        places = _places(children.get(b"iloc", b""), None, metered)
    except (_Damaged, TooMuchMetadataError):
        return None
    found = [
        extent
        for number, item in sorted(places.items())
        if number not in texts and not item.in_idat
        for extent in item.extents
    ]
    return None if any(place + length > source.size for place, length in found) else found


def _boxes(source: PhotoSource) -> Iterator[tuple[bytes, int, int]]:
    """(type, offset of the content, its length) of the file's own boxes."""
    offset = 0
    for _ in range(_MAX_BOXES):
        head = source.at(offset, 16)
        if len(head) < 8:
            return
        size, header = int.from_bytes(head[:4], "big"), 8
        if size == 1:
            size, header = int.from_bytes(head[8:16], "big"), 16
        elif size == 0:  # up to the end of the file
            size = source.size - offset
        if size < header:
            return
        yield head[4:8], offset + header, size - header
        offset += size


def _read_meta(source: MeteredSource, meta: bytes, blocks: MetadataBlocks) -> None:
    children = dict(_children(meta, 4))  # behind version and flags
    kinds = dict(_kinds(children.get(b"iinf", b""), source))
    if not kinds:
        return
    places = _places(children.get(b"iloc", b""), set(kinds), source)
    idat = children.get(b"idat", b"")
    for number, kind in kinds.items():
        item = places.get(number)
        if item is None or (kind == "EXIF" and blocks.exif is not None):
            continue
        if kind == "XMP" and len(blocks.xmp) == _MAX_PACKETS:
            raise TooMuchMetadataError(
                f"The photo has more than {_MAX_PACKETS} items of XMP; the rest was not read."
            )
        data = _content(source, idat, item)
        if data is None:
            blocks.warnings.append(f"The {kind} is damaged and was not read.")
        elif kind == "XMP":
            blocks.xmp.append(data)
        else:
            # Four bytes say how much lies in front of the TIFF structure, mostly "Exif\0\0".
            skip = int.from_bytes(data[:4], "big")
            blocks.exif = data[4 + skip :] if 4 + skip < len(data) else None


def _children(data: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    """(type, content) of the boxes in a box, the last of each type counting."""
    for _ in range(_MAX_BOXES):
        if at + 8 > len(data):
            return
        size = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if size < 8 or at + size > len(data):
            raise _Damaged
        yield kind, data[at + 8 : at + size]
        at += size


def _kinds(iinf: bytes, meter: MeteredSource) -> Iterator[tuple[int, str]]:
    """The numbers of the items that are metadata."""
    if not iinf:
        return
    cursor = _Cursor(iinf)
    version = cursor.number(1)
    cursor.number(3)
    count = cursor.number(2 if version == 0 else 4)
    for _ in range(min(count, _MAX_ITEMS)):
        meter.step()
        size = cursor.number(4)
        if cursor.raw(4) != b"infe" or size < 8:
            raise _Damaged
        entry = _Cursor(cursor.raw(size - 8))
        entry_version = entry.number(1)
        entry.number(3)
        if entry_version < 2:
            continue
        number = entry.number(2 if entry_version == 2 else 4)
        entry.number(2)
        kind = entry.raw(4)
        if kind == b"Exif":
            yield number, "EXIF"
        elif kind == b"mime":
            entry.text()  # its name
            if entry.text() == _XMP_TYPE and not entry.text():  # not compressed
                yield number, "XMP"


def _places(iloc: bytes, wanted: set[int] | None, meter: MeteredSource) -> dict[int, _MetaItem]:
    """By their numbers; of all items, if none is wanted in particular."""
    cursor = _Cursor(iloc)
    version = cursor.number(1)
    cursor.number(3)
    sizes = cursor.number(2)
    offset_size, length_size = sizes >> 12, sizes >> 8 & 15
    base_size, index_size = sizes >> 4 & 15, sizes & 15 if version in (1, 2) else 0
    count = cursor.number(4 if version == 2 else 2)
    found: dict[int, _MetaItem] = {}
    extent_size = index_size + offset_size + length_size
    for _ in range(min(count, _MAX_ITEMS)):
        number = cursor.number(4 if version == 2 else 2)
        method = cursor.number(2) & 15 if version in (1, 2) else 0
        cursor.number(2)  # in this very file
        base = cursor.number(base_size)
        item = _MetaItem(method == 1)
        is_wanted = wanted is None or number in wanted
        extents = cursor.number(2)
        if extents > 1 and not extent_size:
            raise _Damaged  # the same place 65,535 times, in no bytes at all
        meter.step(1 + extents)
        for extent in range(extents):
            cursor.number(index_size)
            place = base + cursor.number(offset_size)
            length = cursor.number(length_size)
            if is_wanted and extent < _MAX_EXTENTS:
                item.extents.append((place, length))
        if is_wanted and method < 2:
            found[number] = item
    return found


def _content(source: MeteredSource, idat: bytes, item: _MetaItem) -> bytes | None:
    size = sum(length for _, length in item.extents)
    if not item.extents or size > MAX_BLOCK:
        return None
    if item.in_idat:
        source.spend(min(size, len(idat) * len(item.extents)))
    parts = [
        idat[place : place + length] if item.in_idat else source.at(place, length)
        for place, length in item.extents
    ]
    whole = all(len(part) == length for part, (_, length) in zip(parts, item.extents, strict=True))
    return b"".join(parts) if whole else None
