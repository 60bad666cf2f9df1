"""
Photos → what is written in them about them: JPEG, PNG and HEIC. Pure, and without decoding a
pixel: the readers walk the containers' headers and ask a `PhotoSource` for the few bytes that
matter, so a photo of any size costs the same and a decompression bomb nothing.
"""

from __future__ import annotations

SUFFIXES = (".jpg", ".jpeg", ".png", ".heic")


def is_photo(path: str) -> bool:
    """Whether a file of this name is read as a photo, whatever it holds."""
    return path.lower().endswith(SUFFIXES)
