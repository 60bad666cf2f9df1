"""Reads a whole file of another program, which may be something else than a file by now."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from qmd.system.beneath import READ


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
