"""
Replace a file whole or not at all, in a locked directory; knows no database and no policy.

A writer holds the directory of the file open and locked. The lock is on the directory itself: it
leaves no file in the user's folders, and all processes see the same lock. Names are looked up below
the open directory, so that replacing the directory by a link meanwhile has no effect. The new
content is written to a temporary file beside the target, made durable, given the mode, owner and
extended attributes of the target, and renamed over it.
"""

# Names relative to an open directory, which Path objects cannot express:
# ruff: noqa: PTH116, PTH118, PTH208

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from qmd import libraries
from qmd.files.writing import directories

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: Temporary names are hidden, so that no mask includes the files and no watch reports them.
PREFIX = ".qmd-"
#: Seconds that a writer waits for another one in the same directory.
WAIT_S = 30.0
_BLOCK = 1 << 20

_CAN_OPEN_RELATIVE: bool = {os.open, os.mkdir, os.rename, os.unlink, os.stat} <= os.supports_dir_fd
_FILE = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file; ``state`` differs after any change."""

    data: bytes
    state: tuple[int, ...]


def is_temporary_name(name: str) -> bool:
    """Whether a name has the form of `temporary_name`."""
    return re.fullmatch(rf"{re.escape(PREFIX)}[0-9a-f]{{16}}(\.\w+)?", name) is not None


def temporary_name(suffix: str = ".tmp") -> str:
    """A random name that no file has."""
    return f"{PREFIX}{secrets.token_hex(8)}{suffix}"


@contextmanager
def locked(path: Path, *, create: bool = False, wait_s: float = WAIT_S) -> Iterator[LockedFolder]:
    """
    Lock a directory against all threads and processes that use this function.

    Args:
        path: Absolute and without links; a link in it is an error.
        create: Create the directory and those above it. If the block fails, those that were created
            and are empty are removed again.
        wait_s: Seconds to wait for another writer.

    Raises:
        BlockingIOError: Another writer held the lock for longer than ``wait_s``.
        OSError: The directory cannot be opened or created.
    """
    created: list[Path] = []
    deadline = time.monotonic() + wait_s
    try:
        while True:
            folder = LockedFolder(path, create, created, deadline)
            try:
                if folder.is_in_place():
                    yield folder
                    return
            finally:
                folder.close()
    except BaseException:
        for directory in reversed(created):
            with suppress(OSError):
                directory.rmdir()
        raise


class LockedFolder:
    """A directory held open and locked; use `locked`. Names are plain names in it."""

    def __init__(self, path: Path, create: bool, created: list[Path], deadline: float) -> None:
        self.path = path
        self._fd: int | None = None
        self._lock: BaseFileLock | None = None
        if _CAN_OPEN_RELATIVE:
            self._fd = directories.open_directory(path, create, created)
        elif create:
            directories.make_directories(path, created)
        try:
            self._acquire(deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._fd is not None:
            os.close(self._fd)  # and with it the lock
            self._fd = None

    def is_in_place(self) -> bool:
        """Whether the directory is still at its path: it may have been moved during the wait."""
        if self._fd is None:
            return True
        try:
            now = os.stat(self.path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(now, os.fstat(self._fd))

    # -- the lock ----------------------------------------------------------------------

    def _acquire(self, deadline: float) -> None:
        if self._fd is not None and self._lock_directory_itself(self._fd, deadline):
            return
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:32]
        lock = libraries.filelock.FileLock(_lock_directory() / f"{digest}.lock", mode=0o600)
        try:
            lock.acquire(timeout=max(0.0, deadline - time.monotonic()), poll_interval=0.005)
        except libraries.filelock.Timeout:
            self._busy()
        self._lock = lock

    def _lock_directory_itself(self, descriptor: int, deadline: float) -> bool:
        """False where the file system knows no locks on directories (some network ones)."""
        if sys.platform == "win32":
            return False
        pause_s = 0.001
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self._busy()
                time.sleep(pause_s)
                pause_s = min(0.02, pause_s * 2)
            except OSError:
                return False
            else:
                return True

    def _busy(self) -> NoReturn:
        raise BlockingIOError(
            errno.EBUSY, "Another process is writing in this directory", str(self.path)
        )

    # -- reading -----------------------------------------------------------------------

    def read(self, name: str) -> FileContent | None:
        """
        A file that is to be replaced; None if there is none.

        Raises:
            PermissionError: It may not be read, or not written, also by the superuser.
            IsADirectoryError, OSError: It is no regular file.
        """
        descriptor = self._open_present(name)
        if descriptor is None:
            return None
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read()
            return FileContent(data, state_of(os.fstat(descriptor)))
        finally:
            os.close(descriptor)

    def state(self, name: str) -> tuple[int, ...] | None:
        """What `FileContent.state` was if nobody has changed the file; None if there is none."""
        try:
            return state_of(self._stat(name))
        except FileNotFoundError:
            return None

    @contextmanager
    def original(self, name: str) -> Iterator[int]:
        """
        A file that is to be replaced, open for reading. Raises what `read` raises, and
        FileNotFoundError.
        """
        descriptor = self._open_present(name)
        if descriptor is None:
            self._fail(errno.ENOENT, name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_present(self, name: str) -> int | None:
        """For reading, after the proof that it may be written."""
        try:
            status = self._stat(name)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(status.st_mode):
            self._fail(errno.EISDIR, name)
        if stat.S_ISLNK(status.st_mode):
            self._fail(errno.ELOOP, name)
        if not stat.S_ISREG(status.st_mode):
            self._fail(errno.EINVAL, name)
        if not status.st_mode & 0o222:
            self._fail(errno.EACCES, name)
        # O_RDWR asks for the right to write, and says why not: permission, disk, in use.
        descriptor = self._open(name, os.O_RDWR)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # swapped in just now
            os.close(descriptor)
            self._fail(errno.EINVAL, name)
        return descriptor

    # -- writing -----------------------------------------------------------------------

    def create(self, name: str, blocks: Iterable[bytes], *, like: str | None = None) -> None:
        """
        Write a file that did not exist, and make it durable.

        ``like``: the file whose mode, owner and attributes it takes; None for a new file's.
        """
        # What the old file hid must not be readable for a moment.
        descriptor = self._open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if like is None else 0o600
        )
        try:
            for block in blocks:
                _write_all(descriptor, block)
            if like is not None and sys.platform != "win32":
                model = self._open(like, os.O_RDONLY)
                try:
                    _copy_owner_and_mode(descriptor, model)
                    _set_later_time(descriptor, model)
                except PermissionError as error:
                    raise self._named(error, like) from error
                finally:
                    os.close(model)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, name: str, target: str) -> None:
        """Put one file in the place of another, or of none, and make that durable."""
        try:
            os.replace(
                self._name_for_system(name),
                self._name_for_system(target),
                src_dir_fd=self._fd,
                dst_dir_fd=self._fd,
            )
        except OSError as error:
            raise self._named(error, target) from error
        if self._fd is not None:
            directories.sync_directory(self._fd)

    def remove(self, name: str) -> None:
        """Delete a file, and make that durable. Raises FileNotFoundError."""
        try:
            os.unlink(self._name_for_system(name), dir_fd=self._fd)
        except OSError as error:
            raise self._named(error, name) from error
        if self._fd is not None:
            directories.sync_directory(self._fd)

    def move(self, name: str, folder: LockedFolder, new_name: str) -> None:
        """
        Move a file to another directory, or rename it, and make that durable.

        Raises:
            FileExistsError: Something has the new name.
        """
        try:
            if folder is self and self._is_in_other_case(name, new_name):
                os.rename(
                    self._name_for_system(name),
                    self._name_for_system(new_name),
                    src_dir_fd=self._fd,
                    dst_dir_fd=self._fd,
                )
            else:
                directories.rename_exclusive(
                    self._name_for_system(name),
                    folder._name_for_system(new_name),
                    source_dir=self._fd,
                    target_dir=folder._fd,
                )
        except OSError as error:
            raise folder._named(error, new_name) from error
        for each in {self, folder}:
            if each._fd is not None:
                directories.sync_directory(each._fd)

    def _is_in_other_case(self, name: str, new_name: str) -> bool:
        """Whether both names mean one file, of which the directory lists the first name alone."""
        try:
            is_one_file = os.path.samestat(self._stat(name), self._stat(new_name))
        except OSError:
            return False
        names = os.listdir(self.path if self._fd is None else self._fd)
        return is_one_file and new_name not in names

    def discard(self, name: str) -> None:
        """Remove a temporary file, if it is there."""
        assert name.startswith(PREFIX)
        with suppress(FileNotFoundError):
            os.unlink(self._name_for_system(name), dir_fd=self._fd)

    # -- names -------------------------------------------------------------------------

    def _name_for_system(self, name: str) -> str:
        return os.path.join(self.path, name) if self._fd is None else name

    def _stat(self, name: str) -> os.stat_result:
        try:
            return os.stat(self._name_for_system(name), dir_fd=self._fd, follow_symlinks=False)
        except OSError as error:
            raise self._named(error, name) from error

    def _open(self, name: str, flags: int, mode: int = 0o600) -> int:
        try:
            return os.open(self._name_for_system(name), flags | _FILE, mode, dir_fd=self._fd)
        except OSError as error:
            raise self._named(error, name) from error

    def _named(self, error: OSError, name: str) -> OSError:
        """The error with the whole path: the system knows only the name in the directory."""
        path = os.path.join(self.path, name)
        if error.errno is None or getattr(error, "winerror", None):
            error.filename = path
            return error
        return OSError(error.errno, error.strerror, path)

    def _fail(self, number: int, name: str) -> NoReturn:
        raise OSError(number, os.strerror(number), os.path.join(self.path, name))


def _lock_directory() -> Path:
    """
    Where lock files lie, for what has no locks on directories: Windows, some network disks.

    Raises:
        PermissionError: Somebody else has created it.
    """
    get_id: Callable[[], int] | None = getattr(os, "getuid", None)
    path = Path(tempfile.gettempdir()) / (
        "qmd-locks" if get_id is None else f"qmd-locks-{get_id()}"
    )
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if get_id is not None and (not stat.S_ISDIR(status.st_mode) or status.st_uid != get_id()):
        raise PermissionError(errno.EACCES, "Not this user's directory", str(path))
    return path


# --- files ---------------------------------------------------------------------------


def blocks_of(stream: BinaryIO | FileIO) -> Iterator[bytes]:
    """What a stream has left, in pieces."""
    return iter(partial(stream.read, _BLOCK), b"")


def sha256_of(stream: BinaryIO | FileIO) -> str:
    """The SHA-256 of what a stream has left, in hexadecimal."""
    digest = hashlib.sha256()
    for block in blocks_of(stream):
        digest.update(block)
    return digest.hexdigest()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """What differs after any change of a file."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


if sys.platform != "win32":

    def _copy_owner_and_mode(descriptor: int, model: int) -> None:
        """
        Give a file the owner, the attributes and the mode of another.

        Raises:
            PermissionError: Neither its owner nor its group can be kept: others might lose it.
                Even where the mode lets everybody write: nobody but the superuser can give a new
                file away, and writing into the old one would not be atomic.
        """
        old, new = os.fstat(model), os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            try:
                os.fchown(descriptor, old.st_uid, old.st_gid)
            except PermissionError:
                try:
                    os.fchown(descriptor, -1, old.st_gid)
                except PermissionError as error:
                    raise PermissionError(error.errno, "Its owner cannot be kept") from error
        if sys.platform == "linux":
            _copy_attributes(descriptor, model)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))

    def _set_later_time(descriptor: int, model: int) -> None:
        """
        A later time than the other's, whose last change may be of the same tick of the clock:
        of two states of a file the index must know which is newer.
        """
        old, new = os.fstat(model), os.fstat(descriptor)
        if new.st_mtime_ns <= old.st_mtime_ns:
            os.utime(descriptor, ns=(new.st_atime_ns, old.st_mtime_ns + 1000))


if sys.platform == "linux":

    def _copy_attributes(descriptor: int, model: int) -> None:
        """What a person or their programs put there, access lists included."""
        try:
            names = os.listxattr(model)
        except OSError:  # this file system has none
            return
        for name in names:
            if name.startswith(("user.", "system.posix_acl")):
                os.setxattr(descriptor, name, os.getxattr(model, name))
