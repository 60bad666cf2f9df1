"""
The copy of one pushed folder on the server's disk.

Content comes in parts, named by the SHA-256 of the whole file. A file takes its place when its
content is complete: it is renamed there, with the time that it has on its owner's machine. Parts
of one collection are of no use to another, so naming a hash gives nobody the content behind it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath

from qmd.errors import DiskFullError, InputError
from qmd.files.writing import locked_folder
from qmd.files.writing.directories import make_directories
from qmd.files.writing.policy import is_plain_on_windows
from qmd.values import transfer
from qmd.values.text import is_safe_name, is_utf8

#: Parts of files that nobody completes are deleted after a day, and the oldest when there are more
#: than these. A client completes one file after the other, so it needs few.
PART_LIFE_S = 86_400
MAX_PARTS = 1_000
MAX_PARTS_BYTES = 1 << 30
#: The room of the disk that a push leaves free: this share of it, and at most so many bytes.
FREE_SHARE = 0.05
FREE_BYTES = 1 << 30
_MAX_PATH = 1_000  # characters
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: What a system says of a path or time that its disk cannot hold.
_UNUSABLE = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


class PushedFolder:
    """
    Stores what is pushed to one collection.

    Args:
        root: The directory of the collection.
        parts: A directory on the same disk, for content that is not complete.
    """

    def __init__(self, root: Path, parts: Path) -> None:
        self.root = root
        self._parts = parts

    def create(self) -> None:
        """Make the directories, readable by nobody else."""
        for directory in (self.root, self._parts):
            make_directories(directory, [])
            directory.chmod(0o700)

    # -- what is there -----------------------------------------------------------------

    def listing(self, after: str, limit: int = transfer.MAX_LISTED) -> transfer.PushedFiles:
        """The files whose paths come after ``after``. Raises InputError for an unusable path."""
        start = _parts_of(after) if after else ()
        files: list[transfer.PushedFile] = []
        for path, status in self._walk("", start):
            if len(files) == limit:
                return transfer.PushedFiles(tuple(files), more=True)
            files.append(transfer.PushedFile(path, status.st_size, status.st_mtime_ns))
        return transfer.PushedFiles(tuple(files), more=False)

    def _walk(self, folder: str, after: tuple[str, ...]) -> Iterator[tuple[str, os.stat_result]]:
        """
        The files below a folder in the order of their paths' names.

        Folders that come before ``after`` are not listed, so a page costs no more than its files
        and the folders on the way to them.
        """
        try:
            with os.scandir(self.root / folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        first = after[0] if after else ""
        for entry in entries:
            if locked_folder.is_temporary_name(entry.name):
                _discard_leftover(entry)
                continue
            if entry.name < first:
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            rest = after[1:] if entry.name == first else ()
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(path, rest)
            elif entry.is_file(follow_symlinks=False) and (entry.name != first or rest):
                yield path, entry.stat(follow_symlinks=False)

    # -- what comes --------------------------------------------------------------------

    def apply(self, push: transfer.Push, name: str) -> tuple[transfer.PushReport, list[Path]]:
        """
        Store one step of a push.

        Args:
            name: The name of the collection, for the report.

        Returns:
            The report, and the paths of all files that were written or deleted.
        """
        _require_each_once(push)
        refused: list[transfer.RefusedFile] = []
        needed: dict[str, transfer.NeededContent] = {}
        for part in push.parts:
            self._add_part(part)
        self._discard_parts(keep={part.sha256 for part in push.parts})
        stored: list[str] = []
        displaced: list[str] = []
        unchanged = 0
        for file in push.files:
            reason = self._refusal(file)
            if reason is not None:
                refused.append(transfer.RefusedFile(file.path, reason))
                continue
            try:
                if self._has(file.path, file):
                    self._set_time(self.root / file.path, file.mtime_ns)
                    unchanged += 1
                elif self._store(file, displaced):
                    stored.append(file.path)
                else:
                    size = self._size_of_part(file.sha256)
                    needed[file.sha256] = transfer.NeededContent(file.sha256, size)
            except OSError as error:
                if error.errno not in _UNUSABLE:
                    raise
                refused.append(
                    transfer.RefusedFile(file.path, f"not on this disk: {error.strerror}")
                )
        # Not before: two files of one push may have the same content.
        for file in push.files:
            if file.sha256 not in needed and _SHA256.fullmatch(file.sha256):
                self._part(file.sha256).unlink(missing_ok=True)
        gone = [path for path in push.deleted if self._problem_of(path) is None]
        deleted = sum(map(self._delete, gone))
        report = transfer.PushReport(
            name, len(stored), unchanged, deleted, tuple(needed.values()), tuple(refused)
        )
        return report, [self.root / path for path in (*stored, *displaced, *gone)]

    def _refusal(self, file: transfer.SentFile) -> str | None:
        """Why the server does not take a file; None if it does."""
        problem = self._problem_of(file.path)
        if problem is not None:
            return problem
        if not _SHA256.fullmatch(file.sha256):
            return "its hash is no SHA-256"
        if not 0 <= file.bytes <= transfer.MAX_FILE_BYTES:
            return f"it has more than {transfer.MAX_FILE_BYTES >> 20} MB"
        if not 0 <= file.mtime_ns < 1 << 63:
            return "its time is no time"
        return None

    def _problem_of(self, path: str) -> str | None:
        """Why a push may not use this path; None if it may."""
        try:
            _parts_of(path)
            return "on the server a link is in its way" if self._has_link(path) else None
        except InputError as error:
            return str(error)
        except OSError as error:  # the path of the server's folder and this one are too long
            return f"not on this disk: {error.strerror}"

    def _has_link(self, path: str) -> bool:
        """
        Whether a path is a symbolic link, or leads through one.

        A push makes none. Somebody on the server may, and what it leads to is nobody's to read,
        replace or delete by a push.
        """
        place = str(self.root)
        for name in path.split("/"):
            place = f"{place}{os.sep}{name}"
            if os.path.islink(place):  # noqa: PTH114 - with Path objects, deep paths take long
                return True
        return False

    def _has(self, path: str, file: transfer.SentFile) -> bool:
        """Whether the file at a path has the content of ``file``."""
        place = self.root / path
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        is_candidate = stat.S_ISREG(status.st_mode) and status.st_size == file.bytes
        return is_candidate and _sha256(place) == file.sha256

    def _store(self, file: transfer.SentFile, displaced: list[str]) -> bool:
        """
        Put a file in its place; False if the content is not complete.

        Files that are in the way are deleted, and their paths added to ``displaced``.
        """
        place = self.root / file.path
        part = self._part(file.sha256)
        if self._size_of_part(file.sha256) != file.bytes and file.bytes:
            moved_from = file.moved_from
            if moved_from is None or self._problem_of(moved_from) is not None:
                return False
            if not self._has(moved_from, file):
                return False
            self._require_room(file.bytes)
            shutil.copyfile(self.root / moved_from, part)
        elif not file.bytes:
            part.write_bytes(b"")
        if _sha256(part) != file.sha256:
            part.unlink()
            return False
        self._require_room(file.bytes)
        displaced += self._make_way(place)
        with locked_folder.locked(place.parent, create=True) as folder:
            temporary = locked_folder.temporary_name()
            with part.open("rb") as content:
                folder.create(temporary, locked_folder.blocks_of(content))
            self._set_time(place.parent / temporary, file.mtime_ns)
            folder.replace(temporary, place.name)
        return True

    def _make_way(self, place: Path) -> list[str]:
        """
        Delete a file where a folder is to be, or a folder where the file is to be; the paths of the
        files that are gone. On the machine of the owner they cannot be any more.
        """
        path = place.relative_to(self.root)
        above = [each.as_posix() for each in path.parents if (self.root / each).is_file()]
        for each in above:
            (self.root / each).unlink()
        below: list[str] = []
        if place.is_dir():
            below += [each for each, _ in self._walk(path.as_posix(), ())]
            shutil.rmtree(place)  # removes links, and nothing that they lead to
        return [*above, *below]

    def _delete(self, path: str) -> bool:
        place = self.root / path
        if place.is_dir():  # a folder has taken the place of the file
            return False
        try:
            with locked_folder.locked(place.parent) as folder:
                folder.remove(place.name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        for above in place.parents:
            if above == self.root:
                break
            try:
                above.rmdir()
            except OSError:  # it has other files
                break
        return True

    @staticmethod
    def _set_time(path: Path, mtime_ns: int) -> None:
        os.utime(path, ns=(mtime_ns, mtime_ns), follow_symlinks=False)

    # -- parts -------------------------------------------------------------------------

    def _part(self, sha256: str) -> Path:
        return self._parts / sha256

    def _size_of_part(self, sha256: str) -> int:
        try:
            return self._part(sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def _add_part(self, part: transfer.SentPart) -> None:
        """Append a part. One that does not continue what is there has no effect."""
        if not _SHA256.fullmatch(part.sha256):
            raise InputError(f"No SHA-256: {part.sha256[:80]!r}", hint="Send 64 hex digits.")
        if part.offset + len(part.content) > transfer.MAX_FILE_BYTES:
            raise InputError(
                f"A file has more than {transfer.MAX_FILE_BYTES >> 20} MB.", hint="Leave it out."
            )
        if part.offset != self._size_of_part(part.sha256):
            return
        self._require_room(len(part.content))
        with self._part(part.sha256).open("ab") as stream:
            stream.write(part.content)

    def _discard_parts(self, keep: set[str]) -> None:
        """Delete what is too old, and the oldest of what is too much, but for ``keep``."""
        parts: list[tuple[float, int, str]] = []
        with os.scandir(self._parts) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    parts.append((status.st_mtime, status.st_size, entry.name))
        count, total = len(parts), sum(size for _, size, _ in parts)
        for changed, size, name in sorted(parts):
            is_too_much = count > MAX_PARTS or total > MAX_PARTS_BYTES
            if name not in keep and (is_too_much or time.time() - changed > PART_LIFE_S):
                self._part(name).unlink(missing_ok=True)
                count, total = count - 1, total - size

    def _require_room(self, size: int) -> None:
        """Raises DiskFullError if ``size`` more bytes would fill the disk of the server."""
        disk = shutil.disk_usage(self._parts)
        if disk.free - size < min(FREE_BYTES, disk.total * FREE_SHARE):
            raise DiskFullError(
                "The disk of the server is nearly full. What was stored before stays.",
                hint="Free some space on the server, then push again.",
            )


def _discard_leftover(entry: os.DirEntry[str]) -> None:
    """Delete what a server that was killed had begun to write."""
    with suppress(OSError):
        # Its time of modification is that on the owner's machine.
        if time.time() - entry.stat(follow_symlinks=False).st_ctime > PART_LIFE_S:
            Path(entry.path).unlink()


def _require_each_once(push: transfer.Push) -> None:
    """Raises InputError if a path comes twice: each is hashed, and a file moves to one place."""
    for paths in (
        [file.path for file in push.files],
        [file.moved_from for file in push.files if file.moved_from is not None],
    ):
        if len(set(paths)) < len(paths):
            raise InputError("A path comes twice in one push.", hint="Send each path once.")


def _parts_of(path: str) -> tuple[str, ...]:
    """
    The names of a path that lies below the folder.

    Raises:
        InputError: It leads elsewhere, is hidden, or is no name on some system.
    """
    parts = PurePosixPath(path).parts
    if (
        not path
        or len(path) > _MAX_PATH
        or "/".join(parts) != path
        or any(part.startswith(".") or len(os.fsencode(part)) > 255 for part in parts)
        or not is_safe_name(path)
        or "\\" in path
        or not is_utf8(path)
        or (os.name == "nt" and _is_special_on_windows(path))
    ):
        raise InputError("not a usable path", hint="Paths are relative, with /, and not hidden.")
    return parts


def _is_special_on_windows(path: str) -> bool:
    """Whether Windows takes a path for one with a drive, or for that of another file."""
    windows_path = PureWindowsPath(path)
    return bool(windows_path.anchor) or not is_plain_on_windows(windows_path)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return locked_folder.sha256_of(stream)
