"""Rename a file without replacing another one: in one step where the system can."""

# Names relative to an open directory, which Path objects cannot express:
# ruff: noqa: PTH104

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A system or file system that lacks an operation answers with one of these.
_UNSUPPORTED = frozenset(
    {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
)
_AT_FDCWD = -2 if sys.platform == "darwin" else -100


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
