"""Read one file below a root, with the state that tells which file, and which version, was read."""

# Path objects would cost more than they give here:
# ruff: noqa: PTH114, PTH118

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from qmd.errors import FileTooLargeError, FileVanishedError, UnreadableFileError
from qmd.ingest.rules import MAX_BYTES
from qmd.ingest.scan import is_vanished, printable
from qmd.parse.photo.source import PhotoSource, PhotoStream
from qmd.system.beneath import READ, open_beneath

ResultT = TypeVar("ResultT")

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ReadFile:
    """
    A file's bytes with its state from before they were read: if it changed meanwhile, the
    next scan finds it changed.
    """

    data: bytes
    size: int
    mtime_ns: int
    inode: int
    device: int


def read_file(root: Path, path: str, *, max_bytes: int = MAX_BYTES) -> ReadFile:
    """
    Read the file ``path`` (relative to ``root``, with ``/``), never one outside the root.

    A file that changes while it is read is read again, at most three times; of one that
    never rests (a log) the last reading counts.

    Raises:
        FileVanishedError: It is not there (any more).
        FileTooLargeError: More than ``max_bytes``.
        UnreadableFileError: No permission, an I/O error, no regular file, or a link on the way.
    """
    with _opened(root, path) as descriptor:
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            data = _read_all(descriptor, before.st_size, max_bytes, path)
            after = os.fstat(descriptor)
            if _state(before) == _state(after) and len(data) == after.st_size:
                break
        return ReadFile(data, len(data), before.st_mtime_ns, before.st_ino, before.st_dev)


def read_parts(
    root: Path, path: str, parse: Callable[[PhotoSource], ResultT]
) -> tuple[ReadFile, ResultT]:
    """
    As `read_file`, for a file of which a parser needs but a few places, however large it is.

    Returns:
        The state of the file, without its bytes, and what ``parse`` made of it.

    Raises:
        FileVanishedError, UnreadableFileError: As `read_file`.
        Whatever ``parse`` raises.
    """
    with (
        _opened(root, path) as descriptor,
        os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream,
    ):
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            result = parse(PhotoStream(stream, before.st_size))
            if _state(before) == _state(os.fstat(descriptor)):
                break
        state = ReadFile(b"", before.st_size, before.st_mtime_ns, before.st_ino, before.st_dev)
        return state, result


@contextmanager
def _opened(root: Path, path: str) -> Iterator[int]:
    """A descriptor of the file, which is a regular one inside the root; see `read_file`."""
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
        # At most one byte over the size, which tells that it grew: following a file that
        # is being written would never end.
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


def _open_error(root: Path, path: str, error: OSError) -> UnreadableFileError:
    name = printable(path)
    if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
        full_path = os.path.join(root, path)
        if os.path.islink(full_path):
            return UnreadableFileError(
                f"{name} is a symbolic link.",
                hint="Links are not followed; index what it leads to.",
            )
        if not os.path.realpath(full_path).startswith(os.path.join(os.path.realpath(root), "")):
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
