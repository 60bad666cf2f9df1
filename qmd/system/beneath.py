"""
Open files and directories below a root directory, and never outside of it.

A check of a path is not enough: a moment later somebody may replace a directory by a link. So this
module opens a path name by name, each relative to the directory opened before, and follows no link.
Windows cannot open names relative to a directory. There the path is checked before and after it is
opened, so two replacements at the right moments go unnoticed.
"""

# Path objects cannot express names relative to an open directory:
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

#: The flags for reading a file that may have been replaced by something else.
READ = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a fifo must not wait for a writer
    | getattr(os, "O_BINARY", 0)
)

#: Whether the system can open names relative to an open directory.
BY_NAME: bool = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = (  # with O_PATH, passing through a directory needs no permission to list it
    getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)


def open_beneath(root: str | os.PathLike[str], path: str, flags: int) -> int:
    """
    Open a file or directory below a root, and return its descriptor.

    Args:
        root: A directory; the root itself may be a link.
        path: Relative to the root, with ``/`` between the names; "" is the root itself.

    Raises:
        OSError: The path cannot be opened, or a part of it is a link (ELOOP, ENOTDIR).
        ValueError: No file can have this name.
    """
    if not BY_NAME:
        return _open_and_check(root, path, flags)
    folder, name = _open_parent(root, path)
    try:
        return os.open(name, flags | _NO_LINK, dir_fd=folder)
    finally:
        os.close(folder)


def stat_beneath(root: str | os.PathLike[str], path: str) -> os.stat_result:
    """The status of a file, directory or link. Raises the errors of `open_beneath`."""
    if not BY_NAME:
        _require_beneath(root, path.rpartition("/")[0])
        return os.stat(os.path.join(root, path), follow_symlinks=False)
    folder, name = _open_parent(root, path)
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)


@contextmanager
def scandir_beneath(
    root: str | os.PathLike[str], path: str
) -> Iterator[Iterator[os.DirEntry[str]]]:
    """
    List a directory below a root. Use the entries only inside the block.

    Raises:
        OSError, ValueError: As `open_beneath`.
    """
    if not BY_NAME:
        _require_beneath(root, path)
        with os.scandir(os.path.join(root, path)) as entries:
            yield entries
        _require_beneath(root, path)
        return
    descriptor = open_beneath(root, path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def _open_parent(root: str | os.PathLike[str], path: str) -> tuple[int, str]:
    """Open the directory that contains the last name of a path; return it with that name."""
    *folders, name = [component for component in path.split("/") if component not in ("", ".")] or [
        "."
    ]
    if ".." in folders or name == "..":
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    descriptor = os.open(root, _DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, _DIRECTORY | _NO_LINK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, name


def _open_and_check(root: str | os.PathLike[str], path: str, flags: int) -> int:
    _require_beneath(root, path)
    full_path = os.path.join(root, path)
    descriptor = os.open(full_path, flags | _NO_LINK)
    try:
        status = os.stat(_require_beneath(root, path), follow_symlinks=False)
        if not os.path.samestat(status, os.fstat(descriptor)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), full_path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_beneath(root: str | os.PathLike[str], path: str) -> str:
    """The full path, with the links of the root resolved. Raises OSError if it has other links."""
    real_root = os.path.realpath(root)
    expected = os.path.normpath(os.path.join(real_root, path))
    if os.path.normcase(os.path.realpath(expected)) != os.path.normcase(expected):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), expected)
    return expected
