"""
Unpacks an archive of notes into a folder, as note programs export one.

The archive may come from a stranger: no path leads out of the folder, no link is made or followed,
no file is replaced, and entries, bytes and the ratio of compression have limits. The bytes that
come out are counted, whatever the archive says of them.

Only names with a flag, or with a field of Info-ZIP, are UTF-8 for certain. Programs on a Chinese,
Japanese or Korean Windows write names in the encoding of that system, and say nothing about it.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from qmd.errors import DecodeError, InputError, NotFoundError, StoreError
from qmd.files.writing.directories import make_directories, open_directory
from qmd.files.writing.policy import steering_reason
from qmd.parse.decode import decode
from qmd.system.beneath import BY_NAME
from qmd.transfer.export import METHODS
from qmd.values.text import is_safe_name
from qmd.values.transfer import NotTaken, UnpackReport

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
#: What a name without a flag is in by the standard; only ASCII is the same everywhere.
_STANDARD = "cp437"
_EAST_ASIAN = {"gb18030", "big5hkscs", "cp932", "euc_kr", "cp949", "euc_jp", "shift_jis"}
_UTF8_FLAG = 0x800
#: The field "Info-ZIP Unicode Path".
_UNICODE_PATH = 0x7075
_MAX_COMPONENT = 255  # bytes
_MAX_DEPTH = 50
_DRIVE = re.compile(r"[A-Za-z]:")
#: Also streams of a file (``a.md:b``), and names of devices.
_NOT_ON_WINDOWS = re.compile(
    r'[<>:"|?*]|(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d)(?:[./]|$)|[. ](?:/|$)', re.IGNORECASE
)
#: What systems leave in archives.
_LITTER = {"__macosx", "thumbs.db", "desktop.ini"}
_END_RECORD = b"PK\x05\x06"
_END_RECORD_64 = b"PK\x06\x06"
_TAIL = 65_557 + 76  # the end records, with the longest comment

_IN_THE_WAY = {errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG}
#: What `zipfile` raises for damaged archives, and for methods that it lacks.
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, struct.error)


class _Entry(NamedTuple):
    """
    A file of an archive.

    Attributes:
        path: Where it goes, below the folder, with ``/``.
    """

    info: zipfile.ZipInfo
    path: str


class _Refused(NamedTuple):
    """An entry that becomes no file; ``reason`` is "" if nobody misses it."""

    path: str
    reason: str


class _Names:
    """Decodes the names of one archive, all in the same way."""

    def __init__(self, infos: Sequence[zipfile.ZipInfo], encoding: str | None) -> None:
        """
        Args:
            encoding: That of names that do not say theirs; None to detect it.

        Raises:
            InputError: Python has no such encoding.
        """
        if encoding is not None:
            try:
                b"a".decode(encoding, "replace")
            except (LookupError, UnicodeError) as error:
                raise InputError(
                    f"There is no encoding {encoding!r}.", hint="For example: gbk, cp866."
                ) from error
        raw = [name for name in map(_raw_name, infos) if name is not None and not name.isascii()]
        self.encoding = encoding or _detected(raw)

    def entries(self, infos: Sequence[zipfile.ZipInfo]) -> Iterator[_Entry | _Refused]:
        """Each file of the archive, with its path or the reason why it becomes none."""
        for info in infos:
            name = self._name(info)
            if name.endswith("/"):
                continue
            path = "/".join(part for part in name.split("/") if part not in ("", "."))
            reason = _refusal(info, name, path)
            yield _Entry(info, path) if reason is None else _Refused(name, reason)

    def _name(self, info: zipfile.ZipInfo) -> str:
        raw = _raw_name(info)
        name = info.orig_filename if raw is None else _unicode_path(info.extra, raw)
        if name is None and raw is not None:
            name = raw.decode(self.encoding, "replace")
        return (name or "").replace("\\", "/")


def _raw_name(info: zipfile.ZipInfo) -> bytes | None:
    """The bytes of a name that does not say its encoding."""
    return None if info.flag_bits & _UTF8_FLAG else info.orig_filename.encode("cp437")


def _detected(names: Sequence[bytes]) -> str:
    """The encoding of all names together; one alone would be too short to tell."""
    if not names:
        return "utf-8"
    try:
        encoding = decode(b"\n".join(names)).encoding
    except DecodeError:
        return _STANDARD
    return encoding if encoding == "utf-8" or encoding in _EAST_ASIAN else _STANDARD


def _unicode_path(extra: bytes, raw: bytes) -> str | None:
    """The name in the field of Info-ZIP, if it belongs to the name in front of it."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        data, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == _UNICODE_PATH and data[:1] == b"\x01" and len(data) > 5:
            (checksum,) = struct.unpack_from("<I", data, 1)
            if checksum == zlib.crc32(raw):
                return data[5:].decode("utf-8", "replace")
    return None


def _refusal(info: zipfile.ZipInfo, name: str, path: str) -> str | None:
    """Why an entry becomes no file; None if it does."""
    parts = path.split("/")
    kind = (info.external_attr >> 16) & 0o170000  # of Unix; 0 from other systems
    if name.startswith("/") or _DRIVE.match(name) or ".." in parts:
        return "Its path leads out of the folder."
    if any(part.startswith(".") or part.lower() in _LITTER for part in parts):
        return ""
    if kind not in (0, 0o100000):
        return "It is a link or a device, and no file."
    if (steers := steering_reason(parts)) is not None:
        return f"Not unpacked: {steers}. If you trust it, unpack it yourself."
    return _unusable(path, parts)


def _unusable(path: str, parts: Sequence[str]) -> str | None:
    """Why no file can have this path; None if one can."""
    if not path or not is_safe_name(path) or "\ufffd" in path:
        return "Its name is not usable; --encoding names the encoding of names."
    if sys.platform == "win32" and _NOT_ON_WINDOWS.search(path):
        return "Windows has no files of this name."
    if len(parts) > _MAX_DEPTH or any(len(part.encode()) > _MAX_COMPONENT for part in parts):
        return "Its name is too long, or it lies too deep."
    return None


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
            names = _Names(infos, self._encoding)
            self._encodings.append(names.encoding)
            for entry in names.entries(infos):
                if isinstance(entry, _Refused):
                    self._refuse(entry.path, entry.reason)
                else:
                    self._take(archive, entry, depth)

    def _take(self, archive: zipfile.ZipFile, entry: _Entry, depth: int) -> None:
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

    def _pieces(self, archive: zipfile.ZipFile, entry: _Entry) -> Iterator[bytes]:
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

    def _plan(self, archive: zipfile.ZipFile, entry: _Entry) -> None:
        length = sum(map(len, self._pieces(archive, entry)))
        if (self._folder / entry.path).exists() or entry.path in self._planned:
            self._present += 1
            return
        self._planned.add(entry.path)
        self._files += 1
        self._bytes += length

    def _write(self, archive: zipfile.ZipFile, entry: _Entry) -> None:
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
                    self._bytes += sum(map(file.write, self._pieces(archive, entry)))
                _set_time(place, entry.info, directory)
                is_whole = True
            finally:
                if not is_whole:
                    os.unlink(place, dir_fd=directory)
        self._files += 1

    def _compare(self, archive: zipfile.ZipFile, entry: _Entry, path: Path) -> None:
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


def _set_time(place: str, info: zipfile.ZipInfo, directory: int | None) -> None:
    """Give the file the time that the archive says, so that recent notes are recent."""
    try:
        seconds = time.mktime((*info.date_time, 0, 0, -1))
        os.utime(place, (seconds, seconds), dir_fd=directory)
    except (OverflowError, ValueError, OSError):
        return  # 30 February
