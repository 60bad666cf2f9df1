"""Checks whether metadata can be written into photos; a problem only where there are photos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ExifToolError
from qmd.files.photos.exiftool import ExifTool
from qmd.ingest.mask import compile_mask
from qmd.parse.formats import PHOTO
from qmd.values import Check

if TYPE_CHECKING:
    from qmd.store import Store


def examine(store: Store, command: str | Path | None) -> Iterator[Check]:
    """One check. ``command`` is the exiftool that the settings name; None if they name none."""
    tool = ExifTool(command)
    try:
        yield Check("exiftool", "ok", f"exiftool {tool.version()} writes into photos")
    except ExifToolError as error:
        if command is None and error.cause == "missing" and not _has_photos(store):
            yield Check("exiftool", "ok", "exiftool is not installed; only photos would need it")
        else:
            message = f"Metadata cannot be written into photos: {error.reason}."
            yield Check("exiftool", "warning", message, error.hint)
    finally:
        tool.close()


def _has_photos(store: Store) -> bool:
    """Whether the mask of a collection includes photos."""
    with store.reading() as reader:
        masks = [compile_mask(collection.pattern) for collection in reader.collections.all()]
    return any(
        matches(f"photo{suffix}", f"photo{suffix}")
        for matches in masks
        for suffix in PHOTO.suffixes
    )
