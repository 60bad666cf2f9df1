"""
Opens and creates directories without following a link on the way, and renames without replacing.

No lock, no content of files.
"""

# Names relative to an open directory, which Path objects cannot express:
# ruff: noqa: PTH104, PTH116

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_DIRECTORY = (
    getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
)
#: A system or file system that lacks an operation answers with one of these.
_UNSUPPORTED = frozenset(
    {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
)
_AT_FDCWD = -2 if sys.platform == "darwin" else -100


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


def rename_exclusive(
    source: str, target: str, *, source_dir: int | None = None, target_dir: int | None = None
) -> None:
    """
    Rename a file to a name that is free.

    Linux and macOS do this in one step. Where they cannot, the file has both names for a moment;
    on file systems without hard links, another program could take the name in the same moment.

    Args:
        source_dir, target_dir: Descriptors of the directories that the names are relative to.

    Raises:
        FileExistsError: The new name is taken. Nothing is changed.
        OSError: As `os.rename`.
    """
    if os.name == "nt":
        os.rename(source, target)  # which replaces nothing there
        return
    if _rename_in_one_step(source, target, source_dir, target_dir):
        return
    try:
        os.link(
            source,
            target,
            src_dir_fd=source_dir,
            dst_dir_fd=target_dir,
            follow_symlinks=False,
        )
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    else:
        os.unlink(source, dir_fd=source_dir)
        return
    try:
        os.stat(target, dir_fd=target_dir, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


def _rename_in_one_step(
    source: str, target: str, source_dir: int | None, target_dir: int | None
) -> bool:
    """False if the system or the file system cannot. Raises OSError."""
    rename = _system_call()
    if rename is None:
        return False
    number = rename(
        _AT_FDCWD if source_dir is None else source_dir,
        os.fsencode(source),
        _AT_FDCWD if target_dir is None else target_dir,
        os.fsencode(target),
    )
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), target)
    return True


@cache
def _system_call() -> Callable[[int, bytes, int, bytes], int] | None:
    """
    The function of the C library that renames a file unless the new name is taken.

    It returns 0 or an error number. None if the library has none.
    """
    import ctypes

    name, flag = ("renameatx_np", 4) if sys.platform == "darwin" else ("renameat2", 1)
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]

    def rename(source_dir: int, source: bytes, target_dir: int, target: bytes) -> int:
        if function(source_dir, source, target_dir, target, flag) == 0:
            return 0
        return ctypes.get_errno()

    return rename
