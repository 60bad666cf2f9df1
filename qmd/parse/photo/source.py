"""Access to the bytes of a photo, within limits, and the blocks of metadata read from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, Literal

PhotoKind = Literal["JPG", "PNG", "HEIC"]

#: The most that one block of metadata may hold; real ones stay below 1 MiB.
MAX_BLOCK = 16 * 1024 * 1024
#: The most that all metadata of one file may hold, unpacked, and that is read to find them.
MAX_METADATA = 16 * 1024 * 1024
#: Reads and other steps on the way through one file.
MAX_STEPS = 200_000

_HEIC_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"))


class PhotoSource:
    """Random access to the bytes of a photo in an open binary stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self.size = size

    @classmethod
    def of_bytes(cls, data: bytes) -> PhotoSource:
        return cls(BytesIO(data), len(data))

    def at(self, offset: int, length: int) -> bytes:
        """The bytes from ``offset`` on; fewer than ``length`` only where the file ends."""
        if offset >= self.size:
            return b""
        self._stream.seek(offset)
        length = min(length, self.size - offset)
        data = self._stream.read(length)
        while len(data) < length and (more := self._stream.read(length - len(data))):
            data += more  # an unbuffered stream may return less than it has
        return data


class TooMuchMetadataError(Exception):
    """A file's metadata passes a limit; the message is a sentence for people."""


class MeteredSource(PhotoSource):
    """
    A photo that gives at most `MAX_METADATA` bytes in `MAX_STEPS` steps, repeated reads included: a
    few bytes of a hostile file may refer to the same place a thousand times.
    """

    def __init__(self, source: PhotoSource) -> None:
        super().__init__(source._stream, source.size)
        self._bytes_left = MAX_METADATA
        self._steps_left = MAX_STEPS

    def at(self, offset: int, length: int) -> bytes:
        """
        As `PhotoSource.at`.

        Raises:
            TooMuchMetadataError: The file has given enough.
        """
        self.step()
        self.spend(max(0, min(length, self.size - offset)))
        return super().at(offset, length)

    def spend(self, size: int) -> None:
        """Count bytes that were not read here: unpacked or copied ones. Raises as `at`."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise TooMuchMetadataError(
                f"The photo has more than {MAX_METADATA // 2**20} MiB of metadata; "
                "the rest was not read."
            )

    def step(self, count: int = 1) -> None:
        """Count work that reads nothing. Raises as `at`."""
        self._steps_left -= count
        if self._steps_left < 0:
            raise TooMuchMetadataError(
                "The photo's metadata is in too many parts; the rest was not read."
            )


@dataclass(slots=True)
class MetadataBlocks:
    """
    The metadata of one photo as they lie in its container.

    ``exif`` is a TIFF structure, ``xmp`` one or more packets, ``iptc`` the records of IPTC
    IIM, ``texts`` the text chunks of a PNG by keyword. ``warnings`` are sentences for people.
    """

    kind: PhotoKind
    exif: bytes | None = None
    xmp: list[bytes] = field(default_factory=list)
    iptc: bytes | None = None
    texts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def kind_of(head: bytes) -> PhotoKind | None:
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


def kind_of_name(path: str) -> PhotoKind | None:
    """The format that a file's name promises."""
    suffix = path.rpartition(".")[2].lower()
    return {"jpg": "JPG", "jpeg": "JPG", "png": "PNG", "heic": "HEIC"}.get(suffix)  # type: ignore[return-value]
