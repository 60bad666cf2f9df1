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
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: The most folders within each other that are listed. People have thirty at most, and each of them
#: has a path as long as all names above it together.
MAX_DEPTH = 500
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
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


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


class Descent:
    """
    The way through the directories below a root, from each to its neighbours.

    Each step opens one name. `scandir_beneath` opens all names of a path, so a walk through folders
    within each other would take time with the square of their depth.

    Args:
        path: The directory to begin with; its own `leave` leads nowhere.
    """

    def __init__(self, root: str | os.PathLike[str], path: str = "") -> None:
        self._root = root
        self._path = path
        self._names: list[str] = []
        # Of the directory that is open, and of all above it up to the first one. It is still below
        # the present one after `leave`: going up waits until somebody wants to look.
        self._identities: list[tuple[int, int]] = []
        self._descriptor: int | None = None

    def enter(self, name: str) -> None:
        """Go down to a directory. Raises OSError, and stays then."""
        if BY_NAME:
            self._open(os.open(name, _LISTED | _NO_LINK, dir_fd=self._here()))
        self._names.append(name)

    def leave(self) -> None:
        """Go up to the directory above."""
        self._names.pop()

    @contextmanager
    def scandir(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """
        List the present directory. Use the entries only inside the block.

        Raises:
            OSError, ValueError: As `scandir_beneath`.
        """
        if BY_NAME:
            with os.scandir(self._here()) as entries:
                yield entries
        else:
            with scandir_beneath(self._root, self._place()) as entries:
                yield entries

    def close(self) -> None:
        """Close what is open. May be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._identities = None, []

    def _place(self) -> str:
        return "/".join([self._path, *self._names] if self._path else self._names)

    def _here(self) -> int:
        """The open present directory. Raises OSError."""
        while self._descriptor is not None and len(self._identities) > len(self._names) + 1:
            expected = self._identities[-2]
            try:
                above = os.open("..", _LISTED | _NO_LINK, dir_fd=self._descriptor)
            except OSError:  # somebody has deleted it
                self.close()
                break
            del self._identities[-2:]
            self._open(above)
            if self._identities[-1] != expected:  # somebody has moved it
                self.close()
        return self._reopened() if self._descriptor is None else self._descriptor

    def _reopened(self) -> int:
        """The present directory, opened from the root on. Raises OSError."""
        self._open(descriptor := open_beneath(self._root, self._path, _LISTED))
        try:
            for name in self._names:
                descriptor = os.open(name, _LISTED | _NO_LINK, dir_fd=descriptor)
                self._open(descriptor)
        except BaseException:
            self.close()
            raise
        return descriptor

    def _open(self, descriptor: int) -> None:
        """Keep a descriptor in place of the one before."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, status = descriptor, os.fstat(descriptor)
        self._identities.append((status.st_dev, status.st_ino))


def walk_beneath(
    root: str | os.PathLike[str],
    path: str,
    enters: Callable[[os.DirEntry[str]], bool],
    failed: Callable[[str, OSError], None] = lambda path, error: None,
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """
    List a directory and all directories below it, each before those in it.

    Use the entries of a directory before you ask for the next one.

    Args:
        enters: Whether to list a directory, too.
        failed: Called with each directory that cannot be listed, or lies below too many others.
    """
    descent = Descent(root, path)
    stack: list[tuple[str, list[str]]] = []
    place: str | None = path
    try:
        while place is not None:
            below: list[str] = []
            stack.append((place, below))
            try:
                with descent.scandir() as entries_on_disk:
                    entries = list(entries_on_disk)
                below += [
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and enters(entry)
                ]
            except OSError as error:
                failed(place, error)
            else:
                yield place, entries
            place = _enter_next(descent, stack, failed)
    finally:
        descent.close()


def _enter_next(
    descent: Descent, stack: list[tuple[str, list[str]]], failed: Callable[[str, OSError], None]
) -> str | None:
    """
    Enter the next directory, and return its path; None if there is none.

    Args:
        stack: The directories on the way, each with the names in it that are not entered yet.
    """
    while stack:
        above, names = stack[-1]
        if not names:
            stack.pop()
            if stack:
                descent.leave()
            continue
        name = names.pop()
        place = f"{above}/{name}" if above else name
        try:
            if len(stack) > MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), place)
            descent.enter(name)
        except OSError as error:
            failed(place, error)
        else:
            return place
    return None


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
