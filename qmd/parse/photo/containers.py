"""Where JPEG, PNG and HEIC files have their metadata and their image."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from qmd.parse.photo.source import (
    MAX_BLOCK,
    MetadataBlocks,
    MeteredSource,
    PhotoSource,
    TooMuchMetadataError,
    kind_of,
)

_MAX_SEGMENTS = 4096
_MAX_RESOURCES = 10_000  # of Photoshop
_EXIF = b"Exif\0\0"
_JPEG_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_MORE_XMP = b"http://ns.adobe.com/xmp/extension/\0"
_PHOTOSHOP = b"Photoshop 3.0\0"
_APP1, _APP13, _SOS, _EOI = 0xE1, 0xED, 0xDA, 0xD9
_FILL = 0xFF  # may be repeated before a marker
_WITHOUT_LENGTH = frozenset((_FILL, 0x01, *range(0xD0, 0xD9)))
_IMAGE = frozenset((*range(0xC0, 0xD0), _SOS, 0xDB, 0xDC, 0xDD))

# Behind SOS come entropy-coded bytes, in which 0xFF is followed by 0 or by a restart marker.
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_WINDOW = 1 << 20


def jpeg_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
    """Read EXIF, XMP (which may continue in further segments) and IPTC."""
    photoshop: list[bytes] = []
    extended: dict[bytes, dict[int, bytes]] = {}
    for marker, offset, length in _segments(source):
        if marker == _APP1:
            head = source.at(offset, 80)
            if head.startswith(_EXIF) and blocks.exif is None:
                blocks.exif = source.at(offset + len(_EXIF), length - len(_EXIF))
            elif head.startswith(_JPEG_XMP) and not blocks.xmp:
                blocks.xmp.append(source.at(offset + len(_JPEG_XMP), length - len(_JPEG_XMP)))
            elif head.startswith(_MORE_XMP):
                name = len(_MORE_XMP)
                parts = extended.setdefault(head[name : name + 32], {})
                start = int.from_bytes(head[name + 36 : name + 40], "big")
                parts[start] = source.at(offset + name + 40, length - name - 40)
        elif marker == _APP13 and source.at(offset, len(_PHOTOSHOP)) == _PHOTOSHOP:
            photoshop.append(source.at(offset + len(_PHOTOSHOP), length - len(_PHOTOSHOP)))
    if photoshop:
        blocks.iptc = _iptc(b"".join(photoshop))
    if blocks.xmp:
        blocks.xmp += _further_xmp(blocks.xmp[0], extended)


def jpeg_image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
    """
    Where the image itself is, as (offset, length): tables, frames and scans; reads the file.

    None if it ends before its end marker does.
    """
    extents: list[tuple[int, int]] = []
    offset = 2
    for marker, start, length in _segments(source):
        if marker in _IMAGE:
            extents.append((start, length))
        offset = start + length
        if marker == _SOS:
            break
    else:
        return None
    scan = offset
    while True:
        after = _next_marker(source, offset)
        if after is None:
            return None
        marker, offset = after
        if marker == _EOI:
            return [*extents, (scan, offset - scan)]
        if marker in {0x01, 0xD8}:  # neither has a length
            continue
        length = int.from_bytes(source.at(offset, 2), "big")
        if length < 2:
            return None
        offset += length


def scan_start(source: PhotoSource) -> int | None:
    """Where the first pixels begin; None if the file ends before."""
    for marker, start, length in _segments(source):
        if marker == _SOS:
            return start + length
    return None


def _next_marker(source: PhotoSource, offset: int) -> tuple[int, int] | None:
    """The next marker after entropy-coded bytes, and what is after it."""
    while offset < source.size:
        window = source.at(offset, _WINDOW)
        match = _MARKER.search(window)
        if match is not None:
            return window[match.start() + 1], offset + match.end()
        if len(window) < 2:
            return None
        offset += len(window) - 1  # the last byte may be the first of a marker
    return None


def _segments(source: PhotoSource) -> Iterator[tuple[int, int, int]]:
    """
    (marker, offset of the content, its length), up to and with SOS or EOI; a file that ends
    within one ends the walk.
    """
    offset = 2
    for _ in range(_MAX_SEGMENTS):
        head = source.at(offset, 4)
        if len(head) < 2 or head[0] != 0xFF:
            return
        marker = head[1]
        if marker == _EOI:
            yield marker, offset + 2, 0
            return
        if marker in _WITHOUT_LENGTH:
            offset += 1 if marker == _FILL else 2
            continue
        length = int.from_bytes(head[2:4], "big") - 2
        if len(head) < 4 or length < 0 or offset + 4 + length > source.size:
            return
        yield marker, offset + 4, length
        if marker == _SOS:
            return
        offset += 4 + length


def _iptc(resources: bytes) -> bytes | None:
    """The IPTC record among the image resources of Photoshop."""
    at = 0
    for _ in range(_MAX_RESOURCES):
        if resources[at : at + 4] != b"8BIM":
            break
        number = resources[at + 4 : at + 6]
        if len(number) < 2 or at + 6 >= len(resources):
            return None
        name = resources[at + 6] + 1
        at += 6 + name + name % 2
        size = int.from_bytes(resources[at : at + 4], "big")
        at += 4
        if number == b"\x04\x04":
            return resources[at : at + size]
        at += size + size % 2
    return None


def _further_xmp(main: bytes, extended: dict[bytes, dict[int, bytes]]) -> Iterator[bytes]:
    """XMP that did not fit into one segment: the main packet names the rest by its digest."""
    for digest, parts in extended.items():
        packet = b"".join(parts[start] for start in sorted(parts))
        if digest in main:
            yield packet


_MAX_CHUNKS = 100_000
_MAX_TEXT = 1024 * 1024
_PNG_XMP = b"XML:com.adobe.xmp"
_KEYWORDS = (b"Title", b"Description")
_LONGEST_KEYWORD = 80  # bytes, with the NUL after it


def png_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
    """Read EXIF, XMP and the texts ``Title`` and ``Description``, the first of each."""
    read_keywords: set[bytes] = set()
    for kind, offset, length in _chunks(source):
        if kind == b"eXIf" and blocks.exif is None and length <= MAX_BLOCK:
            blocks.exif = source.at(offset, length).removeprefix(b"Exif\0\0")
        elif kind in (b"iTXt", b"tEXt", b"zTXt"):
            keyword = source.at(offset, min(length, _LONGEST_KEYWORD)).partition(b"\0")[0]
            is_xmp = kind == b"iTXt" and keyword == _PNG_XMP
            if keyword in read_keywords or not (is_xmp or keyword in _KEYWORDS):
                continue
            if length > MAX_BLOCK:
                blocks.warnings.append(f"A text of {length:,} bytes was not read.")
                continue
            value = source.at(offset, length)[len(keyword) + 1 :]
            if is_xmp:
                read_keywords.add(keyword)
                _add_xmp(value, source, blocks)
            elif text := _text(kind, value, source):
                read_keywords.add(keyword)
                blocks.texts[keyword.decode()] = text


def _add_xmp(value: bytes, meter: MeteredSource, blocks: MetadataBlocks) -> None:
    packet = _international(value, meter)
    if packet is None:
        blocks.warnings.append("The XMP is damaged and was not read.")
    else:
        blocks.xmp.append(packet)


def png_image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
    """(offset, length) of the chunks of the image itself; None if the file ends before they do."""
    extents: list[tuple[int, int]] = []
    for kind, offset, length in _chunks(source):
        if kind == b"IEND":
            return extents
        if kind[:1].isupper() or kind == b"tRNS":  # a capital: nothing can be shown without it
            extents.append((offset, length))
    return None


def _chunks(source: PhotoSource) -> Iterator[tuple[bytes, int, int]]:
    """(type, offset of the data, its length); a file that ends within one ends the walk."""
    offset = 8
    for _ in range(_MAX_CHUNKS):
        head = source.at(offset, 8)
        if len(head) < 8:
            return
        length = int.from_bytes(head[:4], "big")
        if offset + 12 + length > source.size:
            return
        kind = head[4:]
        yield kind, offset + 8, length
        if kind == b"IEND":
            return
        offset += 12 + length


def _text(kind: bytes, rest: bytes, meter: MeteredSource) -> str:
    if kind == b"iTXt":
        text = _international(rest, meter)
        return "" if text is None else text.decode("utf-8", "replace")
    if kind == b"zTXt":
        return (_inflate(rest[1:], meter) or b"").decode("latin-1")
    return rest[:_MAX_TEXT].decode("latin-1")


def _international(rest: bytes, meter: MeteredSource) -> bytes | None:
    """The text of an iTXt chunk after its keyword, None where it is damaged."""
    compressed, rest = rest[:1], rest[2:]
    _, separator, rest = rest.partition(b"\0")  # the language
    _, other, text = rest.partition(b"\0")  # the keyword in that language
    if not separator or not other:
        return None
    return _inflate(text, meter) if compressed == b"\1" else text


def _inflate(data: bytes, meter: MeteredSource) -> bytes | None:
    """The first MiB at most: a few bytes may stand for gigabytes."""
    meter.spend(min(_MAX_TEXT, 1100 * len(data)))  # what deflate can make of so many bytes
    try:
        return zlib.decompressobj().decompress(data, _MAX_TEXT)
    except zlib.error:
        return None


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


def heic_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
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


def heic_image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
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
    children = dict(_children(meta, 4))  # after version and flags
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


#: Bytes of each piece that is read: the first, the middle and the last of an image. For more,
#: megabytes that nothing else needs would have to come from the disk for each photo.
_PIECE = 65_536


def fingerprint(source: PhotoSource) -> bytes:
    """A hash of 16 bytes; of a damaged photo that of the file."""
    extents = _image(source) or [(0, source.size)]
    size = sum(length for _, length in extents)
    digest = hashlib.sha256(str(size).encode())
    for start in sorted({0, max(0, size // 2), max(0, size - _PIECE)}):
        _add(digest, source, extents, start)
    return digest.digest()[:16]


def _image(source: PhotoSource) -> list[tuple[int, int]] | None:
    """Where the image is, as (offset, length)."""
    match kind_of(source.at(0, 64)):
        case "JPG":
            start = scan_start(source)
            return None if start is None else [(start, source.size - start)]
        case "PNG":
            return png_image_data(source)
        case "HEIC":
            return heic_image_data(source)
    return None


def _add(
    digest: hashlib._Hash, source: PhotoSource, extents: Sequence[tuple[int, int]], start: int
) -> None:
    """Add the piece of an image that begins ``start`` bytes after its beginning."""
    left = _PIECE
    for offset, length in extents:
        if start < length and left:
            piece = source.at(offset + start, min(length - start, left))
            digest.update(piece)
            left -= len(piece)
            start = 0
        else:
            start = max(0, start - length)
