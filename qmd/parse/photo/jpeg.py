"""Reads the metadata segments of a JPEG file, which come before its pixels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qmd.parse.photo.source import MetadataBlocks, MeteredSource, PhotoSource

_MAX_SEGMENTS = 4096
_MAX_RESOURCES = 10_000  # of Photoshop
_EXIF = b"Exif\0\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_MORE_XMP = b"http://ns.adobe.com/xmp/extension/\0"
_PHOTOSHOP = b"Photoshop 3.0\0"
_APP1, _APP13, _SOS, _EOI = 0xE1, 0xED, 0xDA, 0xD9
_FILL = 0xFF  # may be repeated before a marker
_WITHOUT_LENGTH = frozenset((_FILL, 0x01, *range(0xD0, 0xD9)))
_IMAGE = frozenset((*range(0xC0, 0xD0), _SOS, 0xDB, 0xDC, 0xDD))

# Behind SOS come entropy-coded bytes, in which 0xFF is followed by 0 or by a restart marker.
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_WINDOW = 1 << 20


def read_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
    """Read EXIF, XMP (which may continue in further segments) and IPTC."""
    photoshop: list[bytes] = []
    extended: dict[bytes, dict[int, bytes]] = {}
    for marker, offset, length in _segments(source):
        if marker == _APP1:
            head = source.at(offset, 80)
            if head.startswith(_EXIF) and blocks.exif is None:
                blocks.exif = source.at(offset + len(_EXIF), length - len(_EXIF))
            elif head.startswith(_XMP) and not blocks.xmp:
                blocks.xmp.append(source.at(offset + len(_XMP), length - len(_XMP)))
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


def image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
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
        behind = _next_marker(source, offset)
        if behind is None:
            return None
        marker, offset = behind
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
    """The next marker behind entropy-coded bytes, and what is behind it."""
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
