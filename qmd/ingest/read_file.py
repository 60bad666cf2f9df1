"""Read one file below a root, with the state that identifies the file and its version."""

# Paths are strings here, because Path objects are slower:
# ruff: noqa: PTH114, PTH118

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from qmd.errors import FileTooLargeError, FileVanishedError, UnreadableFileError
from qmd.ingest.rules import MAX_BYTES
from qmd.ingest.scan import file_state, is_vanished, printable
from qmd.parse.photo.containers import fingerprint
from qmd.parse.photo.source import PhotoSource
from qmd.system.beneath import READ, open_beneath
from qmd.values import FileState

ResultT = TypeVar("ResultT")

_ATTEMPTS = 3

#: If a file was written less than this many nanoseconds before it was read, a second write may
#: leave its time as it is: most file systems have a clock of milliseconds, some of seconds.
TICK_NS = 20_000_000
COARSE_TICK_NS = 2_000_000_000


def read_file(
    root: str | Path, path: str, *, max_bytes: int = MAX_BYTES
) -> tuple[bytes, FileState]:
    """
    Read the file ``path`` (relative to ``root``, with ``/``), never one outside the root.

    A file that changes during the reading is read up to three times. If it changes each time, as a
    log may, the last reading is used.

    Returns:
        Its bytes, and its state before the reading. If the file changed meanwhile, the next scan
        finds another state.

    Raises:
        FileVanishedError: The file does not exist (any more).
        FileTooLargeError: The file has more than ``max_bytes``.
        UnreadableFileError: No permission, an I/O error, no regular file, or a link in the path.
    """
    with _opened(root, path) as descriptor:
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            data = _read_all(descriptor, before.st_size, max_bytes, path)
            after = os.fstat(descriptor)
            if _state(before) == _state(after) and len(data) == after.st_size:
                break
        return data, file_state(before)._replace(bytes=len(data))


def read_parts(
    root: str | Path, path: str, parse: Callable[[PhotoSource], ResultT]
) -> tuple[ResultT, FileState]:
    """
    As `read_file`, for a file of any size of which a parser needs only a few parts.

    Returns:
        The result of ``parse``, and the state of the file.

    Raises:
        FileVanishedError, UnreadableFileError: As `read_file`.
        Exception: Any exception of ``parse``.
    """
    with (
        _opened(root, path) as descriptor,
        os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream,
    ):
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            result = parse(PhotoSource(stream, before.st_size))
            if _state(before) == _state(os.fstat(descriptor)):
                break
        return result, file_state(before)


@contextmanager
def _opened(root: str | Path, path: str) -> Iterator[int]:
    """Open a regular file inside the root; the value is its descriptor. Raises as `read_file`."""
    try:
        descriptor = open_beneath(root, path, READ)
    except ValueError as error:
        raise UnreadableFileError(f"No usable file name: {path!r}") from error
    except OSError as error:
        raise _open_error(root, path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFileError(
                f"Not a regular file: {printable(path)}", hint="Only regular files are documents."
            )
        yield descriptor
    except OSError as error:
        raise UnreadableFileError(
            f"Cannot read {printable(path)}: {error.strerror or error}",
            hint="Check the disk and the permissions, then run 'qmd index' again.",
        ) from error
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, size: int, max_bytes: int, path: str) -> bytes:
    if size <= max_bytes:
        os.lseek(descriptor, 0, os.SEEK_SET)
        blocks: list[bytes] = []
        total = 0
        # Read at most one byte more than the size, which shows that the file grew. Following a
        # file that is being written might never end.
        while total <= size and (block := os.read(descriptor, size - total + 1)):
            blocks.append(block)
            total += len(block)
        if total <= max_bytes:
            return blocks[0] if len(blocks) == 1 else b"".join(blocks)
        size = total
    raise FileTooLargeError(
        f"{printable(path)} is too large: {size:,} bytes or more; the limit is {max_bytes:,}.",
        hint="Split the file, or raise the limit in the settings.",
    )


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _open_error(root: str | Path, path: str, error: OSError) -> UnreadableFileError:
    name = printable(path)
    if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
        full_path = os.path.join(root, path)
        if os.path.islink(full_path):
            return UnreadableFileError(
                f"{name} is a symbolic link.",
                hint="Links are not followed; index what it leads to.",
            )
        if _leads_out(root, full_path):
            return UnreadableFileError(
                f"{name} leads out of the collection.",
                hint="Add the folder it leads to as a collection of its own.",
            )
    if is_vanished(error):
        return FileVanishedError(f"The file does not exist any more: {name}")
    if error.errno == errno.ELOOP:
        return UnreadableFileError(
            f"{name} was replaced while it was opened.", hint="Run 'qmd index' again."
        )
    return UnreadableFileError(
        f"Cannot open {name}: {error.strerror or error}",
        hint="Check the permissions of the file and of its folder.",
    )


def _leads_out(root: str | Path, full_path: str) -> bool:
    """False also if that cannot be said: realpath fails if a link is replaced as it is read."""
    try:
        real_path, real_root = os.path.realpath(full_path), os.path.realpath(root)
    except OSError:
        return False
    return not real_path.startswith(os.path.join(real_root, ""))


def settled(state: FileState, started: int) -> FileState:
    """
    Return the state, or one that equals no other if the file was written just before it was read.

    In the second case the next scan reads the file again, because a second change may have the
    same time.

    Args:
        started: When the file was read, in nanoseconds since 1970.
    """
    tick = COARSE_TICK_NS if state.mtime_ns % 1_000_000_000 == 0 else TICK_NS
    return state._replace(inode=-1) if started - state.mtime_ns < tick else state


def source_hash(source: bytes | PhotoSource) -> bytes:
    """A hash of a file, by which what was read from its pictures is found again."""
    if isinstance(source, PhotoSource):
        return fingerprint(source)
    return hashlib.sha256(source).digest()[:16]


def is_still(file: Path, state: FileState) -> bool:
    """Whether a file has this state, as far as can be said."""
    try:
        now = file_state(file.lstat())
    except OSError:
        return False
    # The state has no inode (-1) if the file was read right after it was written.
    return (now.bytes, now.mtime_ns) == (state.bytes, state.mtime_ns) and (
        state.inode in (-1, now.inode)
    )
