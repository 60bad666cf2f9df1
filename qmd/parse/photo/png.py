"""Reads the metadata chunks of a PNG file, which may come before the pixels or behind them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from qmd.parse.photo.source import MAX_BLOCK, MetadataBlocks, MeteredSource, PhotoSource

_MAX_CHUNKS = 100_000
_MAX_TEXT = 1024 * 1024
_XMP = b"XML:com.adobe.xmp"
_KEYWORDS = (b"Title", b"Description")
_LONGEST_KEYWORD = 80  # bytes, with the NUL behind it


def read_blocks(source: MeteredSource, blocks: MetadataBlocks) -> None:
    """Read EXIF, XMP and the texts ``Title`` and ``Description``, the first of each."""
    read_keywords: set[bytes] = set()
    for kind, offset, length in _chunks(source):
        if kind == b"eXIf" and blocks.exif is None and length <= MAX_BLOCK:
            blocks.exif = source.at(offset, length).removeprefix(b"Exif\0\0")
        elif kind in (b"iTXt", b"tEXt", b"zTXt"):
            keyword = source.at(offset, min(length, _LONGEST_KEYWORD)).partition(b"\0")[0]
            is_xmp = kind == b"iTXt" and keyword == _XMP
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


def image_data(source: PhotoSource) -> list[tuple[int, int]] | None:
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
    """The text of an iTXt chunk behind its keyword, None where it is damaged."""
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
