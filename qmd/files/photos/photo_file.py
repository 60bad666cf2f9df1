"""
A photo on the disk: whether it may be written, its bytes, its image data.

Each error is a `PhotoError` that names the path as the caller wrote it, ``named_path``.
"""

# ruff: noqa: PTH116

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qmd.errors import NotAPhotoError, OutsideRootsError
from qmd.files.photos import photo_errors
from qmd.files.writing.policy import ResolvedPath, WritePolicy
from qmd.parse.formats import is_photo
from qmd.parse.photo import heic, jpeg, png
from qmd.parse.photo.metadata import read_kind
from qmd.parse.photo.source import PhotoKind, PhotoSource
from qmd.system.beneath import READ

#: A larger photo is not written: its bytes and those of the new one are held in memory.
MAX_BYTES = 256 << 20
_IMAGE_DATA = {"JPG": jpeg.image_data, "PNG": png.image_data, "HEIC": heic.image_data}


def require_writable_photo(named_path: str, policy: WritePolicy) -> tuple[PhotoKind, ResolvedPath]:
    """
    The format of a photo that may be written, and where it lies. Raises PhotoError: what is
    wrong first.

    Where nothing may be written, the error says only that, and not whether the file exists.
    """
    try:
        policy.require_writable()
    except OutsideRootsError as error:
        raise photo_errors.outside(error) from error
    _require_permissions(named_path)
    try:
        place = policy.resolve(named_path)
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
    with open_photo(named_path, lambda: place.open(READ)) as photo:
        if photo.size > MAX_BYTES:
            reason = f"it has more than {MAX_BYTES >> 20} MB"
            raise photo_errors.not_written(named_path, "size", reason)
        return read_kind(photo, named_path), place


def _require_permissions(named_path: str) -> None:
    """Raises PhotoError: there is no such regular file, or its mode forbids to read or write it."""
    try:
        with photo_errors.reading(named_path):
            mode = os.stat(named_path).st_mode
    except ValueError as error:  # no file can have this name
        raise photo_errors.not_found(named_path) from error
    if not stat.S_ISREG(mode):
        raise photo_errors.unreadable(named_path, "it is no regular file")
    # The superuser may write any file; we respect a mode that forbids it.
    if not mode & 0o444 or not os.access(named_path, os.R_OK):
        raise photo_errors.unreadable(named_path, "its permissions forbid it")
    if not mode & 0o222 or not os.access(named_path, os.W_OK):
        raise photo_errors.unwritable(named_path, "its permissions forbid it")


@contextmanager
def open_photo(named_path: str, open_it: Callable[[], int]) -> Iterator[PhotoSource]:
    """
    The bytes of a photo; ``open_it`` gives a descriptor.

    Raises:
        PhotoError: It is not there, cannot be read, or the block finds that it is no photo.
    """
    try:
        with photo_errors.reading(named_path):
            descriptor = open_it()
    except ValueError as error:  # no file can have this name
        raise photo_errors.not_found(named_path) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise photo_errors.unreadable(named_path, "it is no regular file")
        with (
            photo_errors.reading(named_path),
            os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream,
        ):
            if not is_photo(named_path):
                raise NotAPhotoError("its name does not end in .jpg, .jpeg, .png or .heic")
            yield PhotoSource(stream, status.st_size)
    finally:
        os.close(descriptor)


def image_digest(data: bytes, kind: PhotoKind) -> bytes | None:
    """A digest of the image data alone; None if the photo ends in the middle of it."""
    places = _IMAGE_DATA[kind](PhotoSource.of_bytes(data))
    if places is None:
        return None
    digest = hashlib.blake2b(digest_size=32)
    whole = memoryview(data)
    for offset, length in places:
        digest.update(length.to_bytes(8, "big"))
        digest.update(whole[offset : offset + length])
    return digest.digest()
