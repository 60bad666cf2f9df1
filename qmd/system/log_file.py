"""
The log of the servers, which several processes write and ``qmd server logs`` reads.

A record is a line of JSON, written by one call in append mode, so that lines of several processes
do not mix. At `MAX_BYTES` the file is renamed to ``NAME.1`` and so on; the oldest is deleted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from qmd import libraries
from qmd.system.user_dirs import user_dir

#: The size from which a file is renamed.
MAX_BYTES = 2 * 1024 * 1024

#: How many renamed files are kept.
KEPT = 4

_MAX_LINE = 64 * 1024  # bytes; a longer record is cut, and then is no JSON


def log_file() -> Path:
    """The file of this user's servers."""
    return user_dir("state") / "server.log"


class _LogFile:
    """A log file that is open, unless its descriptor is -1."""

    def __init__(self, path: Path, descriptor: int = -1) -> None:
        self._path = path
        self._descriptor = descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_current(self) -> bool:
        """Whether the open file still has the path: another process may have renamed it."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False


class LogWriter(_LogFile):
    """
    Appends lines to a log file. For one thread at a time; other processes may write, too.

    The file may grow beyond its limit by a line of each other process.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Raises OSError if the file cannot be written."""
        self._max_bytes = max_bytes
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        super().__init__(path, _open(path))

    def write(self, line: str) -> None:
        """Append a line, which must not contain a line end. Raises OSError."""
        data = line.encode("utf-8", "backslashreplace")[:_MAX_LINE] + b"\n"
        if os.fstat(self._descriptor).st_size + len(data) > self._max_bytes:
            self._rotate(len(data))
        elif not self._is_current():
            self._reopen()
        os.write(self._descriptor, data)

    def _rotate(self, needed: int) -> None:
        """Rename the file, unless another process has done so meanwhile."""
        lock = libraries.filelock.FileLock(f"{self._path}.lock", timeout=1.0, mode=0o600)
        with suppress(libraries.filelock.Timeout), lock:
            self._reopen()
            if os.fstat(self._descriptor).st_size + needed > self._max_bytes:
                self.close()  # Windows renames no open file
                with suppress(OSError):  # on Windows another process has it open: it grows
                    _rename_all(self._path)
                self._reopen()

    def _reopen(self) -> None:
        self.close()
        self._descriptor = _open(self._path)


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_BINARY", 0)  # Windows would write two characters for a line end
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"Not a regular file: {path}")
    return descriptor


def _rename_all(path: Path) -> None:
    for number in range(KEPT, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if newer.exists():
            newer.replace(older)


def files_of_log(path: Path) -> list[Path]:
    """The files of a log that exist, the oldest first."""
    renamed = [path.with_name(f"{path.name}.{number}") for number in range(KEPT, 0, -1)]
    return [each for each in (*renamed, path) if each.is_file()]


class LogReader(_LogFile):
    """Reads the lines that are appended to a log file, also after it was renamed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rest = b""

    def lines(self) -> Iterator[str]:
        """The whole lines that were appended since the last call; at the first call, all."""
        yield from self._more()
        if not self._is_current():
            yield from self._more()  # what was written before it was renamed
            self._open()
            yield from self._more()

    def _open(self) -> None:
        with suppress(FileNotFoundError):
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self.close()
            self._descriptor = descriptor
            self._rest = b""

    def _more(self) -> Iterator[str]:
        while self._descriptor >= 0 and (data := os.read(self._descriptor, 1 << 16)):
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
