"""Where the bytes of a photo come from, and what of them is metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, Literal, Protocol

Kind = Literal["JPG", "PNG", "HEIC"]

#: The most that one block of metadata may hold; real ones stay below 1 MiB.
MAX_BLOCK = 16 * 1024 * 1024

_HEIC_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"))


class Source(Protocol):
    """Random access to a file's bytes."""

    @property
    def size(self) -> int: ...

    def at(self, offset: int, length: int) -> bytes:
        """The bytes from ``offset`` on; fewer than ``length`` only where the file ends."""
        ...


class StreamSource:
    """A photo in an open binary stream that can be positioned."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self.size = size

    @classmethod
    def of_bytes(cls, data: bytes) -> StreamSource:
        return cls(BytesIO(data), len(data))

    def at(self, offset: int, length: int) -> bytes:
        if offset >= self.size:
            return b""
        self._stream.seek(offset)
        length = min(length, self.size - offset)
        found = self._stream.read(length)
        while len(found) < length and (more := self._stream.read(length - len(found))):
            found += more  # an unbuffered stream may give less than it has
        return found


@dataclass(slots=True)
class Blocks:
    """
    The metadata of one photo as they lie in its container.

    ``exif`` is a TIFF structure, ``xmp`` one or more packets, ``iptc`` the records of IPTC
    IIM, ``texts`` the text chunks of a PNG by keyword. ``warnings`` are sentences for people.
    """

    kind: Kind
    exif: bytes | None = None
    xmp: list[bytes] = field(default_factory=list)
    iptc: bytes | None = None
    texts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def kind_of(head: bytes) -> Kind | None:
    """The format that the first bytes (at least 64) of a file are in."""
    if head.startswith(b"\xff\xd8\xff"):
        return "JPG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head[4:8] == b"ftyp":
        end = min(int.from_bytes(head[:4], "big"), len(head))
        brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
        if brands & _HEIC_BRANDS and b"avif" not in brands:
            return "HEIC"
    return None


def kind_of_name(path: str) -> Kind | None:
    """The format that a file's name promises."""
    suffix = path.rpartition(".")[2].lower()
    return {"jpg": "JPG", "jpeg": "JPG", "png": "PNG", "heic": "HEIC"}.get(suffix)  # type: ignore[return-value]
