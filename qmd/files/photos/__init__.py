"""Metadata of photos: read, planned, and written by exiftool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.photos import exiftool, images, thumbnail

__all__ = ["exiftool", "images", "thumbnail"]

__getattr__ = lazy.load(__name__, modules=__all__)
