"""Reads the metadata of a HEIC file, an ISO base media file whose ``meta`` box lists them."""

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
    """A box has contents that are impossible."""


@dataclass(slots=True)
class _MetaItem:
    """Where an item's bytes are: ``extents`` are (offset, length), in the file or in ``idat``."""

    in_idat: bool = False
    extents: list[tuple[int, int]] = field(default_factory=list)


class _Cursor:
    """Reads the numbers of a box one after the other."""

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
    The (offset, length) of the items that are not metadata, in the order of their ids.

    None if the last box does not end where the file does, an item lies beyond the end, or there
    are more items than a photo has.
    """
    metered = MeteredSource(source)
    boxes = list(_boxes(source))
    if not boxes or boxes[-1][1] + boxes[-1][2] != source.size:
        return None
    try:
        meta = next((metered.at(at, length) for kind, at, length in boxes if kind == b"meta"), b"")
        children = dict(_children(meta, 4))
        metadata_ids = dict(_metadata_items(children.get(b"iinf", b""), metered))
        items = _items(children.get(b"iloc", b""), None, metered)
    except (_Damaged, TooMuchMetadataError):
        return None
    extents = [
        extent
        for item_id, item in sorted(items.items())
        if item_id not in metadata_ids and not item.in_idat
        for extent in item.extents
    ]
    return None if any(at + length > source.size for at, length in extents) else extents


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
    kinds = dict(_metadata_items(children.get(b"iinf", b""), source))
    if not kinds:
        return
    items = _items(children.get(b"iloc", b""), set(kinds), source)
    idat = children.get(b"idat", b"")
    for item_id, kind in kinds.items():
        item = items.get(item_id)
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
            blocks.exif = _tiff(data)


def _tiff(exif: bytes) -> bytes | None:
    """The TIFF structure of an EXIF item; four bytes say how many more come before it."""
    start = 4 + int.from_bytes(exif[:4], "big")
    return exif[start:] if start < len(exif) else None


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


def _metadata_items(iinf: bytes, meter: MeteredSource) -> Iterator[tuple[int, str]]:
    """The id and the kind, "EXIF" or "XMP", of each item that is metadata."""
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
        item = _metadata_item(_Cursor(cursor.raw(size - 8)))
        if item is not None:
            yield item


def _metadata_item(entry: _Cursor) -> tuple[int, str] | None:
    version = entry.number(1)
    entry.number(3)
    if version < 2:
        return None
    item_id = entry.number(2 if version == 2 else 4)
    entry.number(2)
    kind = entry.raw(4)
    if kind == b"Exif":
        return item_id, "EXIF"
    if kind == b"mime":
        entry.text()  # the item's name
        if entry.text() == _XMP_TYPE and not entry.text():  # not compressed
            return item_id, "XMP"
    return None


def _items(iloc: bytes, chosen_ids: set[int] | None, meter: MeteredSource) -> dict[int, _MetaItem]:
    """The items by their ids: the chosen ones, or all if ``chosen_ids`` is None."""
    cursor = _Cursor(iloc)
    version = cursor.number(1)
    cursor.number(3)
    sizes = cursor.number(2)
    has_index = version in (1, 2)
    widths = (sizes & 15 if has_index else 0, sizes >> 12, sizes >> 8 & 15)
    base_width = sizes >> 4 & 15
    number_width = 4 if version == 2 else 2
    items: dict[int, _MetaItem] = {}
    for _ in range(min(cursor.number(number_width), _MAX_ITEMS)):
        item_id = cursor.number(number_width)
        method = cursor.number(2) & 15 if has_index else 0
        cursor.number(2)  # in this very file
        base = cursor.number(base_width)
        extents = _extents(cursor, base, widths, meter)
        if method < 2 and (chosen_ids is None or item_id in chosen_ids):
            items[item_id] = _MetaItem(method == 1, extents)
    return items


def _extents(
    cursor: _Cursor, base: int, widths: tuple[int, int, int], meter: MeteredSource
) -> list[tuple[int, int]]:
    """(offset, length) of one item's parts; ``widths`` of index, offset and length, in bytes."""
    index_width, offset_width, length_width = widths
    count = cursor.number(2)
    if count > 1 and not any(widths):
        raise _Damaged  # the same place 65,535 times, in no bytes at all
    meter.step(1 + count)
    extents: list[tuple[int, int]] = []
    for _ in range(count):
        cursor.number(index_width)
        offset = base + cursor.number(offset_width)
        length = cursor.number(length_width)
        if len(extents) < _MAX_EXTENTS:
            extents.append((offset, length))
    return extents


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
