"""Tells one photo from another by its image: new metadata leave the fingerprint as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from qmd.parse.photo import heic, jpeg, png
from qmd.parse.photo.source import PhotoSource, kind_of

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
            start = jpeg.scan_start(source)
            return None if start is None else [(start, source.size - start)]
        case "PNG":
            return png.image_data(source)
        case "HEIC":
            return heic.image_data(source)
    return None


def _add(
    digest: hashlib._Hash, source: PhotoSource, extents: Sequence[tuple[int, int]], start: int
) -> None:
    """Add the piece of an image that begins ``start`` bytes behind its beginning."""
    left = _PIECE
    for offset, length in extents:
        if start < length and left:
            piece = source.at(offset + start, min(length - start, left))
            digest.update(piece)
            left -= len(piece)
            start = 0
        else:
            start = max(0, start - length)
