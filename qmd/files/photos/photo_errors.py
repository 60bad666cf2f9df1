"""
The `PhotoError` for each thing that may go wrong with a photo; its hint says what to do next.

``named_path`` is the path as the caller wrote it.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd.errors import NotAPhotoError, OutsideRootsError, PhotoError, PhotoProblem

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
