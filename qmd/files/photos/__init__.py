"""Metadata of photos: read, planned, and written by exiftool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.photos import exiftool as exiftool
    from qmd.files.photos import images as images

__getattr__ = lazy.load(__name__)
