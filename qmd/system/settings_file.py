"""Reads files of settings that somebody else wrote: whole ones, and TOML, within limits."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

from qmd.system.beneath import READ

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WORD = re.compile(r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(\.[ \t]*)?")
_MAX_PARTS = 100
"""The most parts of a key. `tomllib` takes 15 GB and minutes for one of 64,000."""


def toml_values(text: str) -> dict[str, Any]:
    """The values of a text, which may begin with a byte order mark. Raises ValueError."""
    end = parts = 0
    for word in _WORD.finditer(text):
        parts = parts + 1 if word.start() == end else 1
        end = word.end() if word[1] else -1
        if parts > _MAX_PARTS:
            raise ValueError("it has a key of too many parts")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_regular(path: Path, max_bytes: int) -> bytes:
    """
    The content of a file; links are followed.

    A pipe or a device is never read: its reader could wait for ever, or never reach an end.

    Args:
        max_bytes: If the file is longer, one byte more than this is returned.

    Raises:
        OSError: It cannot be opened, or is no file.
    """
    descriptor = os.open(path, READ | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "It is a pipe or a device, and no file", str(path))
        return file.read(max_bytes + 1)
