"""
A photo on the disk: whether it may be written, its bytes, its image data.

Each error is a `PhotoError` that names the path as the caller wrote it, ``named_path``.
"""

# ruff: noqa: PTH116

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd.errors import NotAPhotoError, OutsideRootsError, PhotoError, PhotoProblem
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
        raise outside(error) from error
    _require_permissions(named_path)
    try:
        place = policy.resolve(named_path)
        str(place.target).encode()
    except OutsideRootsError as error:
        raise outside(error) from error
    except UnicodeEncodeError as error:
        raise not_written(
            named_path,
            "name",
            "its name is not valid UTF-8, which the database needs",
            "Rename it.",
        ) from error
    if not os.access(place.target.parent, os.W_OK | os.X_OK):
        raise unwritable(named_path, "no file can be made in its folder")
    with open_photo(named_path, lambda: place.open(READ)) as photo:
        if photo.size > MAX_BYTES:
            reason = f"it has more than {MAX_BYTES >> 20} MB"
            raise not_written(named_path, "size", reason)
        return read_kind(photo, named_path), place


def _require_permissions(named_path: str) -> None:
    """Raises PhotoError: there is no such regular file, or its mode forbids to read or write it."""
    try:
        with reading(named_path):
            mode = os.stat(named_path).st_mode
    except ValueError as error:  # no file can have this name
        raise not_found(named_path) from error
    if not stat.S_ISREG(mode):
        raise unreadable(named_path, "it is no regular file")
    # The superuser may write any file; we respect a mode that forbids it.
    if not mode & 0o444 or not os.access(named_path, os.R_OK):
        raise unreadable(named_path, "its permissions forbid it")
    if not mode & 0o222 or not os.access(named_path, os.W_OK):
        raise unwritable(named_path, "its permissions forbid it")


@contextmanager
def open_photo(named_path: str, open_it: Callable[[], int]) -> Iterator[PhotoSource]:
    """
    The bytes of a photo; ``open_it`` gives a descriptor.

    Raises:
        PhotoError: It is not there, cannot be read, or the block finds that it is no photo.
    """
    try:
        with reading(named_path):
            descriptor = open_it()
    except ValueError as error:  # no file can have this name
        raise not_found(named_path) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise unreadable(named_path, "it is no regular file")
        with (
            reading(named_path),
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


_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_METADATA = 256 * 1024  # more than all that may be written

_WORDS: dict[PhotoProblem, tuple[str, str]] = {
    "not_found": ("There is no file {path}", "Check the path."),
    "not_readable": (
        "The file cannot be read: {path} ({reason}).",
        "Name a photo that you may read.",
    ),
    "not_writable": (
        "The file may not be written: {path} ({reason}).",
        "Check the permissions of the file and of its folder.",
    ),
    "unsupported": (
        "Not a JPG, PNG or HEIC photo: {path} ({reason}).",
        "Metadata is written into JPG, PNG and HEIC files.",
    ),
    "not_written": ("Nothing was written into {path}: {reason}.", "The photo is as it was."),
    "not_verified": (
        "Nothing was written into {path}: {reason}.",
        "The photo is as it was. Please report it, with the photo if you can.",
    ),
}
"""Problem → the sentence, and what to do unless something better is known."""


def photo_error(
    problem: PhotoProblem, named_path: str, cause: str, reason: str = "", hint: str | None = None
) -> PhotoError:
    message, usual_hint = _WORDS[problem]
    return PhotoError(
        problem,
        message.format(path=named_path, reason=reason.rstrip(".")),
        cause=cause,
        reason=reason,
        hint=hint or usual_hint,
    )


def not_found(named_path: str) -> PhotoError:
    return photo_error("not_found", named_path, "not_found")


def unreadable(named_path: str, reason: str) -> PhotoError:
    return photo_error("not_readable", named_path, "unreadable", reason)


def unwritable(named_path: str, reason: str) -> PhotoError:
    return photo_error("not_writable", named_path, "permission", reason)


def not_written(named_path: str, cause: str, reason: str, hint: str | None = None) -> PhotoError:
    return photo_error("not_written", named_path, cause, reason, hint)


def not_verified(named_path: str, reason: str) -> PhotoError:
    return photo_error("not_verified", named_path, "different", reason)


def disk_full(named_path: str) -> PhotoError:
    return not_written(named_path, "disk_full", "the disk is full", "Free some space.")


def outside(error: OutsideRootsError) -> PhotoError:
    return PhotoError(
        "not_writable", str(error), cause="outside", reason=error.with_hint, hint=error.hint
    )


@contextmanager
def reading(named_path: str) -> Iterator[None]:
    """Errors of the block, which reads a photo, as a `PhotoError`."""
    try:
        yield
    except NotAPhotoError as error:
        raise photo_error("unsupported", named_path, "format", str(error), error.hint) from error
    except OSError as error:
        gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
        if gone or error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise not_found(named_path) from error
        raise unreadable(named_path, error.strerror or str(error)) from error


def disk_error(named_path: str, error: OSError) -> PhotoError:
    """An error of the disk or of permissions, while the photo was written."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return unwritable(named_path, reason)
    if error.errno == errno.ENOENT:
        return not_found(named_path)
    if error.errno in _FULL:
        return disk_full(named_path)
    return not_written(named_path, "disk", reason, "Check the disk, then try again.")


def is_full(named_path: str) -> bool:
    """Whether the disk has no room for a copy; exiftool has many messages for that."""
    try:
        photo = Path(named_path).resolve()
        return shutil.disk_usage(photo.parent).free < photo.stat().st_size + _METADATA
    except OSError:
        return False
