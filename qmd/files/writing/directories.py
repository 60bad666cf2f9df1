"""Opens and creates directories without following a link on the way; no lock, no files."""

# Names relative to an open directory, which Path objects cannot express:
# ruff: noqa: PTH116

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

_DIRECTORY = (
    getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
)


def open_directory(path: Path, create: bool, created: list[Path]) -> int:
    """
    Open a directory for reading, following no link on the way; returns its descriptor.

    Linux opens it name by name, for which it needs no right to read those above it.

    Args:
        path: Absolute and without links.
        create: Make it and what is missing above it.
        created: Gets the directories that this call makes, the uppermost first.

    Raises:
        OSError: It cannot be reached or created, or a link is on the way.
    """
    if sys.platform != "linux":
        if create:
            make_directories(path, created)
        return _open_and_check(path)
    here = ""  # a text, because a Path is made anew from all its names
    descriptor = os.open("/", os.O_PATH | _DIRECTORY)
    try:
        for name in path.parts[1:]:
            here = f"{here}/{name}"
            following = _enter(descriptor, name, here, create, created)
            os.close(descriptor)
            descriptor = following
        return _reopen(descriptor, path)
    finally:
        os.close(descriptor)


def _enter(parent: int, name: str, path: str, create: bool, created: list[Path]) -> int:
    flags = os.O_PATH | _DIRECTORY
    try:
        try:
            return os.open(name, flags, dir_fd=parent)
        except FileNotFoundError:
            if not create:
                raise
        try:
            os.mkdir(name, dir_fd=parent)
        except FileExistsError:  # another process was faster
            return os.open(name, flags, dir_fd=parent)
        created.append(Path(path))
        descriptor = os.open(name, flags, dir_fd=parent)
        with suppress(PermissionError):  # of a directory that we may enter but not read
            above = _reopen(parent, path.rpartition("/")[0])
            sync_directory(above)
            os.close(above)
        return descriptor
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _reopen(descriptor: int, path: str | Path) -> int:
    """The same directory, open for reading: what locks and fsync ask for."""
    try:
        return os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _open_and_check(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | _DIRECTORY | getattr(os, "O_NOFOLLOW_ANY", 0))
    try:
        now = os.stat(path, follow_symlinks=False)
        if Path(os.path.realpath(path)) != path or not os.path.samestat(now, os.fstat(descriptor)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_directories(path: Path, created: list[Path]) -> None:
    """Make a directory and what is missing above it, and add those to ``created``."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        try:
            directory.mkdir()
        except FileExistsError:  # another process was faster
            continue
        created.append(directory)


def sync_directory(descriptor: int) -> None:
    """Make durable which names the directory holds."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
            raise
