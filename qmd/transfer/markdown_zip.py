"""
Unpacks an archive of notes into a folder, as note programs export one.

The archive may come from a stranger: no path leads out of the folder, no link is made or followed,
no file is replaced, and entries, bytes and the ratio of compression have limits. The bytes that
come out are counted, whatever the archive says of them.
"""

from __future__ import annotations

import errno
import os
import struct
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from qmd.errors import InputError, NotFoundError, StoreError
from qmd.files.writing.directories import make_directories, open_directory
from qmd.system.beneath import BY_NAME
from qmd.transfer.archive import METHODS
from qmd.transfer.zip_names import Entry, Names, Refused
from qmd.values.imports import NotTaken, UnpackReport

MAX_ENTRIES = 100_000
#: Bytes of all files together, and of one.
MAX_BYTES = 8 * 1024**3
MAX_FILE_BYTES = 1024**3
#: Bytes that come out for each that is in the archive, beyond the first 64 MiB. Text has 3 to 10.
MAX_RATIO = 100
_FREE_RATIO_BYTES = 64 * 1024 * 1024
#: Bytes of the list of entries, for `MAX_ENTRIES` with names of 600 bytes.
_MAX_DIRECTORY = 64 * 1024 * 1024
_MAX_LISTED = 50  # of files that were not taken, for one reason
_PIECE = 1024 * 1024
_END_RECORD = b"PK\x05\x06"
_END_RECORD_64 = b"PK\x06\x06"
_TAIL = 65_557 + 76  # the end records, with the longest comment

_IN_THE_WAY = {errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG}
#: What `zipfile` raises for damaged archives, and for methods that it lacks.
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, struct.error)


class _BudgetError(Exception):
    """The archive holds more than may be unpacked."""


def unpack(
    archive: Path, folder: Path, *, encoding: str | None = None, dry_run: bool = False
) -> UnpackReport:
    """
    Unpack the files of an archive into a folder, which is made if it is missing.

    A file that is there already stays; another content under its name is listed. An archive in the
    archive, as Notion makes them, is unpacked as well. What is hidden is left out.

    Args:
        encoding: That of names that do not say theirs; None to detect it.
        dry_run: Write nothing.

    Raises:
        NotFoundError: There is no such archive.
        InputError: It is none, is encrypted, or exceeds a limit. What was unpacked so far stays.
        StoreError: The folder cannot be written.
    """
    if not archive.is_file():
        raise NotFoundError(f"There is no file {archive}.", hint="Check the spelling.")
    unpacking = _Unpacking(archive, folder, encoding, dry_run)
    try:
        if not dry_run:
            folder.mkdir(parents=True, exist_ok=True)
        with archive.open("rb") as file:
            unpacking.run(file, str(archive), depth=0)
    except _BudgetError as error:
        hint = "If you trust it, unpack it yourself, then: qmd up FOLDER"
        raise InputError(f"{archive} holds too much: {error}.", hint=hint) from error
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}",
            hint="Check the folder, its permissions and its free space.",
        ) from error
    return unpacking.report()


class _Unpacking:
    def __init__(self, archive: Path, folder: Path, encoding: str | None, dry_run: bool) -> None:
        self._archive = archive
        self._folder = Path(os.path.realpath(folder))
        self._encoding = encoding
        self._dry_run = dry_run
        self._allowed = min(MAX_BYTES, _FREE_RATIO_BYTES + MAX_RATIO * archive.stat().st_size)
        self._encodings = list[str]()
        self._files = self._present = self._bytes = self._entries = self._spent = 0
        self._reasons = Counter[str]()
        self._not_taken = list[NotTaken]()
        self._planned = set[str]()

    def run(self, file: IO[bytes], name: str, *, depth: int) -> None:
        """Unpack one archive; ``depth`` is 1 for one in the archive."""
        _check_directory(file)
        try:
            archive = zipfile.ZipFile(file)
        except _BAD as error:
            raise InputError(
                f"{name} is no ZIP archive that can be read: {error}",
                hint="Give a .zip file that a note program has exported.",
            ) from error
        with archive:
            infos = archive.infolist()
            self._entries += len(infos)
            if self._entries > MAX_ENTRIES:
                raise _BudgetError(f"more than {MAX_ENTRIES:,} entries")
            names = Names(infos, self._encoding)
            self._encodings.append(names.encoding)
            for entry in names.entries(infos):
                if isinstance(entry, Refused):
                    self._refuse(entry.path, entry.reason)
                else:
                    self._take(archive, entry, depth)

    def _take(self, archive: zipfile.ZipFile, entry: Entry, depth: int) -> None:
        if entry.info.flag_bits & 1:
            raise InputError(
                f"{self._archive} is encrypted.", hint="Unpack it yourself, then: qmd up FOLDER"
            )
        if entry.info.compress_type not in METHODS:
            self._refuse(entry.path, "It is packed in a way that note programs do not use.")
            return
        try:
            if entry.path.lower().endswith(".zip") and depth == 0:
                with tempfile.TemporaryFile() as inner:
                    for piece in self._pieces(archive, entry):
                        inner.write(piece)
                    self.run(inner, entry.path, depth=1)
            elif self._dry_run:
                self._plan(archive, entry)
            else:
                self._write(archive, entry)
        except InputError as error:  # an archive in the archive
            self._refuse(entry.path, str(error))
        except _BAD as error:
            self._refuse(entry.path, f"It is damaged: {error}")
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            self._refuse(entry.path, "A file or a link is in the way.")

    def _pieces(self, archive: zipfile.ZipFile, entry: Entry) -> Iterator[bytes]:
        """The content of an entry. Raises _BudgetError, and the errors of a damaged one."""
        length = 0
        with archive.open(entry.info) as stream:
            while piece := stream.read(_PIECE):
                length += len(piece)
                self._spent += len(piece)
                if length > MAX_FILE_BYTES or self._spent > self._allowed:
                    raise _BudgetError(
                        f"over {self._allowed:,} bytes ({MAX_RATIO} times its own size), or a"
                        f" file over {MAX_FILE_BYTES:,}"
                    )
                yield piece

    def _plan(self, archive: zipfile.ZipFile, entry: Entry) -> None:
        length = sum(map(len, self._pieces(archive, entry)))
        if (self._folder / entry.path).exists() or entry.path in self._planned:
            self._present += 1
            return
        self._planned.add(entry.path)
        self._files += 1
        self._bytes += length

    def _write(self, archive: zipfile.ZipFile, entry: Entry) -> None:
        path = self._folder / entry.path
        with _place(path) as (place, directory):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            try:
                descriptor = os.open(place, flags, 0o666, dir_fd=directory)
            except FileExistsError:
                self._compare(archive, entry, path)
                return
            is_whole = False
            try:
                with os.fdopen(descriptor, "wb") as file:
                    self._bytes += _copy(self._pieces(archive, entry), file)
                _set_time(place, entry.info, directory)
                is_whole = True
            finally:
                if not is_whole:
                    os.unlink(place, dir_fd=directory)
        self._files += 1

    def _compare(self, archive: zipfile.ZipFile, entry: Entry, path: Path) -> None:
        """Tell a file that is there already from another one under its name."""
        same = not path.is_symlink() and path.is_file()
        if same:
            with path.open("rb") as present:
                pieces = self._pieces(archive, entry)
                same = all(piece == present.read(len(piece)) for piece in pieces)
                same = same and not present.read(1)
        if same:
            self._present += 1
        else:
            self._refuse(entry.path, "Another file of this name is there.")

    def _refuse(self, path: str, reason: str) -> None:
        self._reasons[reason] += 1
        if reason and self._reasons[reason] <= _MAX_LISTED:
            self._not_taken.append(NotTaken(path, reason))

    def report(self) -> UnpackReport:
        for reason, count in self._reasons.items():
            if not reason:
                text = "Hidden files and what systems leave in archives are left out."
                self._not_taken.append(NotTaken(f"{count:,} hidden", text))
            elif count > _MAX_LISTED:
                self._not_taken.append(NotTaken(f"{count - _MAX_LISTED:,} more", reason))
        return UnpackReport(
            str(self._archive),
            str(self._folder),
            self._dry_run,
            self._files,
            self._present,
            self._bytes,
            next((each for each in self._encodings if each != "utf-8"), "utf-8"),
            tuple(self._not_taken),
        )


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a list of entries that `zipfile` would load into gigabytes of memory."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _TAIL))
    tail = file.read()
    file.seek(0)
    for signature, form, offset in ((_END_RECORD_64, "<Q", 40), (_END_RECORD, "<I", 12)):
        place = tail.rfind(signature)
        if place < 0 or len(tail) < place + offset + struct.calcsize(form):
            continue
        (size,) = struct.unpack_from(form, tail, place + offset)
        if size != 0xFFFFFFFF and size > _MAX_DIRECTORY:
            raise _BudgetError(f"more than {MAX_ENTRIES:,} entries")


@contextmanager
def _place(path: Path) -> Iterator[tuple[str, int | None]]:
    """
    The name under which to create a file, and the open directory that it is relative to.

    Missing directories are made, and no link is followed on the way. Windows cannot open
    directories: there the name is the whole path, and links are looked for before.
    """
    if not BY_NAME:
        make_directories(path.parent, [])
        if os.path.realpath(path.parent) != str(path.parent):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        yield str(path), None
        return
    directory = open_directory(path.parent, create=True, created=[])
    try:
        yield path.name, directory
    finally:
        os.close(directory)


def _copy(pieces: Iterator[bytes], file: BinaryIO) -> int:
    return sum(file.write(piece) for piece in pieces)


def _set_time(place: str, info: zipfile.ZipInfo, directory: int | None) -> None:
    """Give the file the time that the archive says, so that recent notes are recent."""
    try:
        seconds = time.mktime((*info.date_time, 0, 0, -1))
        os.utime(place, (seconds, seconds), dir_fd=directory)
    except (OverflowError, ValueError, OSError):
        return  # 30 February
