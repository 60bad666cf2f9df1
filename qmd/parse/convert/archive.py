"""
Reads the parts of a file that is a ZIP archive, within limits, and their XML without entities.

Nothing is unpacked to the disk, and a part is found by its name alone, wherever that leads.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from posixpath import normpath
from typing import Any

from lxml import etree

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse.convert.html_blocks import Element

#: Parts of an archive.
MAX_PARTS = 50_000
#: Bytes of one part, and of all that are read, unpacked.
MAX_PART = 64_000_000
MAX_UNPACKED = 200_000_000

#: How XML of strangers is parsed: nothing but the bytes of the part is read.
_XML: dict[str, Any] = {
    **{"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False},
    **{"remove_comments": True, "remove_pis": True},
}
#: A stream of the file that Office makes of an encrypted document.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
#: What `zipfile` raises for archives that are damaged, or made to do harm.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError),
    *(RuntimeError, KeyError, IndexError, OverflowError),
)


class Archive:
    """
    The parts of an archive.

    Args:
        kind: What the file is, such as "EPUB file", for messages.

    Raises:
        DamagedFileError: The bytes are no archive.
    """

    def __init__(self, data: bytes, kind: str) -> None:
        self._kind = kind
        self._left = MAX_UNPACKED
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
        except _DAMAGES as error:
            if data.startswith(b"\xd0\xcf\x11\xe0"):
                if _ENCRYPTED in data:
                    raise EncryptedFileError(kind) from error
                raise self.damaged("it is in the format of Office 97 to 2003") from error
            raise self.damaged("it is no ZIP archive, or its end is missing") from error
        entries = self._zip.infolist()
        if len(entries) > MAX_PARTS:
            raise self.damaged(f"it has over {MAX_PARTS:,} parts")
        self._entries = {entry.filename: entry for entry in entries}

    def __contains__(self, name: str) -> bool:
        return self._name(name) in self._entries

    def names(self) -> Iterator[str]:
        """The names of all parts, in the order of the archive."""
        return iter(self._entries)

    def read(self, name: str) -> bytes:
        """
        The bytes of a part; empty if there is none of this name.

        Raises:
            DamagedFileError: It is damaged, or larger than a part may be.
            EncryptedFileError: It needs a password.
        """
        entry = self._entries.get(self._name(name))
        if entry is None:
            return b""
        if entry.flag_bits & 1:
            raise EncryptedFileError(self._kind)
        most = min(MAX_PART, self._left)
        try:
            with self._zip.open(entry) as part:
                data = part.read(most + 1)
        except _DAMAGES as error:
            raise self.damaged(f"its part {entry.filename[:200]!r} is damaged") from error
        if len(data) > most:
            raise self.damaged("its parts are larger than a document's may be")
        self._left -= len(data)
        return data

    def xml(self, name: str) -> Element | None:
        """
        The root of a part that is XML; None if there is no such part.

        Raises:
            DamagedFileError: It is no XML, or is damaged.
        """
        data = self.read(name)
        if not data:
            return None
        try:
            root = etree.fromstring(data, etree.XMLParser(**_XML))
        except (etree.XMLSyntaxError, ValueError) as error:
            raise self._unreadable(name) from error
        return None if root is None else self._checked(root, name)

    def elements(self, name: str, tag: str) -> Iterator[Element]:
        """
        The elements ``tag`` of a part, one after the other: each is gone when the next one comes.

        Raises:
            DamagedFileError: The part is no XML, or is damaged.
        """
        data = self.read(name)
        if not data:
            return
        try:
            _, root = next(etree.iterparse(BytesIO(data), events=("start",), **_XML))
            self._checked(root, name)
            for _, element in etree.iterparse(BytesIO(data), tag=f"{{*}}{tag}", **_XML):
                yield element
                element.clear()
                parent = element.getparent()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
        except etree.XMLSyntaxError as error:
            raise self._unreadable(name) from error

    def _checked(self, root: Element, name: str) -> Element:
        if root.getroottree().docinfo.internalDTD is not None:
            raise self.damaged(f"its part {name[:200]!r} declares entities, which none needs")
        return root

    def _unreadable(self, name: str) -> DamagedFileError:
        return self.damaged(f"its part {name[:200]!r} cannot be read")

    def damaged(self, reason: str) -> DamagedFileError:
        """The error that says why the file cannot be read."""
        return DamagedFileError(
            f"The {self._kind} cannot be read: {reason}.",
            hint="Open it in its program and save it again.",
        )

    def _name(self, name: str) -> str:
        if name in self._entries:
            return name
        return normpath(name.lstrip("/")) if name else ""
