"""Reads a whole file of another program, which may be something else than a file by now."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

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
