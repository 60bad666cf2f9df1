"""The metadata chunks of a PNG file, which may stand in front of the pixels or behind them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from qmd.parse.photo.source import MAX_BLOCK, Blocks, Source

_MAX_CHUNKS = 100_000
_MAX_TEXT = 1024 * 1024
_XMP = b"XML:com.adobe.xmp"
_KEYWORDS = (b"Title", b"Description")


def read_blocks(source: Source) -> Blocks:
    """EXIF, XMP and the texts ``Title`` and ``Description``."""
    blocks = Blocks("PNG")
    for kind, offset, length in _chunks(source):
        if kind == b"eXIf" and blocks.exif is None and length <= MAX_BLOCK:
            blocks.exif = source.at(offset, length).removeprefix(b"Exif\0\0")
        elif kind in (b"iTXt", b"tEXt", b"zTXt"):
            if length > MAX_BLOCK:
                blocks.warnings.append(f"A text of {length:,} bytes was not read.")
                continue
            keyword, _, rest = source.at(offset, length).partition(b"\0")
            if kind == b"iTXt" and keyword == _XMP and not blocks.xmp:
                packet = _international(rest)
                if packet is None:
                    blocks.warnings.append("The XMP is damaged and was not read.")
                else:
                    blocks.xmp.append(packet)
            elif keyword in _KEYWORDS:
                text = _text(kind, rest)
                if text:
                    blocks.texts.setdefault(keyword.decode(), text)
    return blocks


def image_data(source: Source) -> list[tuple[int, int]] | None:
    """Where the chunks of the image itself are; None if the file ends before they do."""
    found: list[tuple[int, int]] = []
    for kind, offset, length in _chunks(source):
        if kind == b"IEND":
            return found
        if kind[:1].isupper() or kind == b"tRNS":  # a capital: nothing can be shown without it
            found.append((offset, length))
    return None


def _chunks(source: Source) -> Iterator[tuple[bytes, int, int]]:
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


def _text(kind: bytes, rest: bytes) -> str:
    if kind == b"iTXt":
        found = _international(rest)
        return "" if found is None else found.decode("utf-8", "replace")
    if kind == b"zTXt":
        return (_inflate(rest[1:]) or b"").decode("latin-1")
    return rest[:_MAX_TEXT].decode("latin-1")


def _international(rest: bytes) -> bytes | None:
    """The text of an iTXt chunk behind its keyword, None where it is damaged."""
    compressed, rest = rest[:1], rest[2:]
    _, separator, rest = rest.partition(b"\0")  # the language
    _, other, text = rest.partition(b"\0")  # the keyword in that language
    if not separator or not other:
        return None
    return _inflate(text) if compressed == b"\1" else text


def _inflate(data: bytes) -> bytes | None:
    """The first MiB at most: a few bytes may stand for gigabytes."""
    try:
        return zlib.decompressobj().decompress(data, _MAX_TEXT)
    except zlib.error:
        return None
