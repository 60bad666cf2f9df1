"""
The names of the entries of a ZIP archive, and which of them may become files.

Only names with a flag, or with a field of Info-ZIP, are UTF-8 for certain. Programs on a Chinese,
Japanese or Korean Windows write names in the encoding of that system, and say nothing about it.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmd.errors import DecodeError, InputError
from qmd.files.writing.steering import steering_reason
from qmd.parse.decode import decode
from qmd.values.printable import is_safe_name

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


class Entry(NamedTuple):
    """
    A file of an archive.

    Attributes:
        path: Where it goes, below the folder, with ``/``.
    """

    info: zipfile.ZipInfo
    path: str


class Refused(NamedTuple):
    """An entry that becomes no file; ``reason`` is "" if nobody misses it."""

    path: str
    reason: str


class Names:
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

    def entries(self, infos: Sequence[zipfile.ZipInfo]) -> Iterator[Entry | Refused]:
        """Each file of the archive, with its path or the reason why it becomes none."""
        for info in infos:
            name = self._name(info)
            if name.endswith("/"):
                continue
            path = "/".join(part for part in name.split("/") if part not in ("", "."))
            reason = _refusal(info, name, path)
            yield Entry(info, path) if reason is None else Refused(name, reason)

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
