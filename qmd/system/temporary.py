"""
What is written beside its target first, and removal of what killed processes left.

A process that is killed cannot remove what it wrote, and a copy of a database may be large.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from qmd.system.running import is_alive

#: What was written within so many seconds may be of a process on another machine.
_OTHERS_S = 3600.0

_numbers = itertools.count(1)
_names_in_use: set[str] = set()  # the names that this process uses, or has used


def temporary_beside(target: Path) -> Path:
    """
    A name in the directory of ``target`` that nobody else uses; nothing is there.

    What earlier processes left under such a name is removed: files, with what SQLite keeps beside
    them, and directories.
    """
    form = re.compile(
        rf"(\.{re.escape(target.name)}\.(\d{{1,10}})(?:-\d+)?\.tmp)(?:-wal|-shm|-journal)?"
    )
    with suppress(OSError):  # whoever writes the target says that the directory is missing
        for name in os.listdir(target.parent):  # noqa: PTH208 - only names
            match = form.fullmatch(name)
            if match is not None and match[1] not in _names_in_use:
                with suppress(OSError):  # it is gone, or of another user
                    _remove_leftover(target.parent / name, int(match[2]))
    name = f".{target.name}.{os.getpid()}-{next(_numbers)}.tmp"
    _names_in_use.add(name)
    return target.with_name(name)


@contextmanager
def private_file(target: Path) -> Iterator[BinaryIO]:
    """A file that only the user may read; it takes the place of ``target`` when it is whole."""
    temporary = temporary_beside(target)
    # O_EXCL, because in a shared directory another user may create a file of this name.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _remove_leftover(path: Path, pid: int) -> None:
    status = path.lstat()
    is_recent = abs(time.time() - status.st_mtime) < _OTHERS_S
    if pid != os.getpid() and (is_recent or is_alive(pid)):
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()
