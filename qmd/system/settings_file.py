"""
Reads files of settings that somebody else wrote: whole ones, and TOML, within limits.

A path may lead to something else than a file by now, such as a pipe.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

from qmd import libraries
from qmd.errors import InputError, QmdError
from qmd.system.beneath import READ


def read_regular(path: str | Path, max_bytes: int, *, follow_link: bool = True) -> bytes:
    """
    The content of a file.

    Args:
        follow_link: Whether the path may be a link; links above it are followed.

    Raises:
        OSError: As `read_opened`; it cannot be opened, or is a link (errno ELOOP).
    """
    flags = READ | getattr(os, "O_CLOEXEC", 0)
    if not follow_link:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    return read_opened(os.open(path, flags), max_bytes, path)


def read_opened(descriptor: int, max_bytes: int, path: str | Path) -> bytes:
    """
    The content of an open file, which is closed.

    A pipe or a device is never read: its reader could wait for ever, or never reach an end.

    Args:
        max_bytes: If the file is longer, one byte more than this is returned.
        path: For errors.

    Raises:
        OSError: It is no file (errno EISDIR, EINVAL), or cannot be read.
    """
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "It is a pipe or a device, and no file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)
    finally:
        os.close(descriptor)


_WORD = re.compile(r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(\.[ \t]*)?")
#: The most parts of a key. `tomllib` takes 15 GB and minutes for one of 64,000.
_MAX_PARTS = 100


def toml_values(text: str) -> dict[str, Any]:
    """The values of a text, which may begin with a byte order mark. Raises ValueError."""
    end = parts = 0
    for word in _WORD.finditer(text):
        parts = parts + 1 if word.start() == end else 1
        end = word.end() if word[1] else -1
        if parts > _MAX_PARTS:
            raise ValueError("it has a key of too many parts")
    try:
        return libraries.tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_settings(file: Path, max_bytes: int, problem: type[QmdError] = InputError) -> bytes | None:
    """
    The content of a file; None if there is none. Links are followed.

    A pipe or a device is never read: its reader could wait for ever, or never reach an end.

    Raises:
        QmdError: It cannot be read, is no file, or is longer; of the class ``problem``.
    """
    try:
        data = read_regular(file, max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise problem(
            f"{file} cannot be read: {error.strerror or error}",
            hint="Make the file readable or move it away.",
        ) from error
    if len(data) > max_bytes:
        raise problem(f"{file} is longer than {max_bytes:,} bytes, so it is no settings file.")
    return data
