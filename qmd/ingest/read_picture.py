"""Read one page that is a picture, in a worker process (see `qmd.ingest.ocr`)."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from qmd import lazy
from qmd import parse as parse_package
from qmd.errors import IngestError, UnreadableFileError
from qmd.ingest.read_file import read_file, source_hash
from qmd.parse.formats import format_of, turned_on_plugins
from qmd.parse.photo.source import PhotoSource

#: What became of a picture: its text, why it cannot be read, or that its file is not what it was.
READ, PROBLEM, CHANGED = "read", "problem", "changed"
#: Added to the nice value of the process.
_NICE = 5


def read_picture(job: Any) -> tuple[str, str]:
    """
    Read one picture.

    Args:
        job: The recogniser (``module:function``, which takes `Pixels` and returns a
            `PictureText`), root, path, page, source, most bytes and plugins.

    Returns:
        `READ` with the stored form of the text, or `PROBLEM` or `CHANGED` with a sentence.
    """
    _step_back()
    recogniser, root, path, page, source, max_bytes, plugins = job
    if plugins != turned_on_plugins():
        parse_package.plugins.turn_on(plugins)
    file_format = format_of(path)
    try:
        data, _ = read_file(Path(root), path, max_bytes=max_bytes)
    except UnreadableFileError as error:
        return CHANGED, str(error)
    except IngestError as error:
        return PROBLEM, str(error)
    if source_hash(PhotoSource.of_bytes(data) if file_format.reads_parts else data) != source:
        return CHANGED, "It has changed since it was indexed."
    assert file_format.picture is not None
    try:
        pixels = lazy.imported(file_format.picture)(path, data, page)
    except IngestError as error:
        return PROBLEM, str(error)
    return READ, lazy.imported(recogniser)(pixels).stored()


@cache
def _step_back() -> None:
    """Leave the processor to others, once for this process."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(_NICE)
