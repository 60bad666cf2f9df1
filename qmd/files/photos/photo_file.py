"""
A photo on the disk: whether it may be written, its bytes, its image data.

Each error is a `PhotoError` that names the path as the caller wrote it, ``named_path``.
"""

# ruff: noqa: PTH116

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import NotAPhotoError, OutsideRootsError
from qmd.files.photos import photo_errors
from qmd.files.writing.policy import ResolvedPath
from qmd.parse.formats import is_photo
from qmd.parse.photo import heic, jpeg, png
from qmd.parse.photo.metadata import read_kind
from qmd.parse.photo.source import (
    MetadataBlocks,
    MeteredSource,
    PhotoKind,
    PhotoSource,
    PhotoStream,
    TooMuchMetadataError,
)
from qmd.system.beneath import READ

if TYPE_CHECKING:
    from qmd.files.writing.writer import FileWriter

_IMAGE_DATA = {"JPG": jpeg.image_data, "PNG": png.image_data, "HEIC": heic.image_data}
_BLOCK = 1 << 20

ResultT = TypeVar("ResultT")


def require_writable_photo(named_path: str, files: FileWriter) -> tuple[PhotoKind, ResolvedPath]:
    """
    The format of a photo that may be written, and where it lies. Raises PhotoError: what is
    wrong first.

    Where nothing may be written, the error says only that, and not whether the file exists.
    """
    try:
        files.policy.require_writable()
    except OutsideRootsError as error:
        raise photo_errors.outside(error) from error
    _require_permissions(named_path)
    try:
        place = files.resolve(named_path)
        str(place.target).encode()
    except OutsideRootsError as error:
        raise photo_errors.outside(error) from error
    except UnicodeEncodeError as error:
        raise photo_errors.not_written(
            named_path,
            "name",
            "its name is not valid UTF-8, which the database needs",
            "Rename it.",
        ) from error
    if not os.access(place.target.parent, os.W_OK | os.X_OK):
        raise photo_errors.unwritable(named_path, "no file can be made in its folder")
    with (
        photo_descriptor(lambda: place.open(READ), named_path) as descriptor,
        photo_source(descriptor, named_path) as source,
    ):
        return read_photo(named_path, lambda: read_kind(source, named_path)), place


def _require_permissions(named_path: str) -> None:
    """Raises PhotoError: there is no such regular file, or its mode forbids to read or write it."""
    try:
        mode = os.stat(named_path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise photo_errors.not_found(named_path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise photo_errors.not_found(named_path) from error
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error
    if not stat.S_ISREG(mode):
        raise photo_errors.unreadable(named_path, "it is no regular file")
    # The superuser may write any file; we respect a mode that forbids it.
    if not mode & 0o444 or not os.access(named_path, os.R_OK):
        raise photo_errors.unreadable(named_path, "its permissions forbid it")
    if not mode & 0o222 or not os.access(named_path, os.W_OK):
        raise photo_errors.unwritable(named_path, "its permissions forbid it")


def read_photo(named_path: str, read: Callable[[], ResultT]) -> ResultT:
    if not is_photo(named_path):
        raise photo_errors.unsupported(
            named_path, "its name does not end in .jpg, .jpeg, .png or .heic"
        )
    try:
        return read()
    except NotAPhotoError as error:
        raise photo_errors.unsupported(named_path, str(error), error.hint) from error
    except OSError as error:
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error


@contextmanager
def open_photo(path: Path, named_path: str) -> Iterator[PhotoSource]:
    """The bytes of a photo. Raises PhotoError: It is not there, or cannot be read."""
    with (
        photo_descriptor(lambda: os.open(path, READ), named_path) as descriptor,
        photo_source(descriptor, named_path) as source,
    ):
        yield source


@contextmanager
def photo_descriptor(open_photo: Callable[[], int], named_path: str) -> Iterator[int]:
    """A descriptor of a photo. Raises PhotoError: It is not there, or cannot be opened."""
    try:
        descriptor = open_photo()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise photo_errors.not_found(named_path) from error
    except OSError as error:
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def photo_source(descriptor: int, named_path: str) -> Iterator[PhotoSource]:
    """The bytes of an open photo. Raises PhotoError: It is no file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise photo_errors.unreadable(named_path, "it is no regular file")
    with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
        yield PhotoStream(stream, status.st_size)


def iptc_records(source: PhotoSource, named_path: str) -> bytes:
    """All IPTC records, since all are written anew. Raises PhotoError: There are too many."""
    blocks = MetadataBlocks("JPG")
    try:
        jpeg.read_blocks(MeteredSource(source), blocks)
    except TooMuchMetadataError as error:
        raise photo_errors.not_written(named_path, "refused", str(error).rstrip(".")) from error
    return blocks.iptc or b""


def image_digest(source: PhotoSource, kind: PhotoKind) -> bytes | None:
    """A digest of the image data alone; None if the file ends in the middle of it."""
    places = _IMAGE_DATA[kind](source)
    if places is None:
        return None
    digest = hashlib.blake2b(digest_size=32)
    for offset, length in places:
        digest.update(length.to_bytes(8, "big"))
        for start in range(offset, offset + length, _BLOCK):
            digest.update(source.at(start, min(_BLOCK, offset + length - start)))
    return digest.digest()
