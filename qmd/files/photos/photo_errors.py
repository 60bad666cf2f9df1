"""
The `PhotoError` for each thing that may go wrong with a photo; its hint says what to do next.

``named_path`` is the path as the caller wrote it.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from qmd.errors import OutsideRootsError, PhotoError

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_METADATA = 256 * 1024  # more than all that may be written


def not_found(named_path: str) -> PhotoError:
    return PhotoError(
        "not_found", f"There is no file {named_path}", cause="not_found", hint="Check the path."
    )


def unreadable(named_path: str, reason: str) -> PhotoError:
    return PhotoError(
        "not_readable",
        f"The file cannot be read: {named_path} ({reason}).",
        cause="unreadable",
        reason=reason,
        hint="Name a photo that you may read.",
    )


def unwritable(named_path: str, reason: str) -> PhotoError:
    return PhotoError(
        "not_writable",
        f"The file may not be written: {named_path} ({reason}).",
        cause="permission",
        reason=reason,
        hint="Check the permissions of the file and of its folder.",
    )


def unsupported(named_path: str, reason: str, hint: str | None = None) -> PhotoError:
    return PhotoError(
        "unsupported",
        f"Not a JPG, PNG or HEIC photo: {named_path} ({reason.rstrip('.')}).",
        cause="format",
        reason=reason,
        hint=hint or "Metadata is written into JPG, PNG and HEIC files.",
    )


def outside(error: OutsideRootsError) -> PhotoError:
    return PhotoError(
        "not_writable", str(error), cause="outside", reason=error.with_hint, hint=error.hint
    )


def disk_error(named_path: str, error: OSError) -> PhotoError:
    """An error of the disk or of permissions, while the photo was written."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return unwritable(named_path, reason)
    if error.errno == errno.ENOENT:
        return not_found(named_path)
    if error.errno in _FULL:
        return disk_full(named_path)
    return not_written(named_path, "disk", reason, hint="Check the disk, then try again.")


def is_full(named_path: str) -> bool:
    """Whether the disk has no room for a copy; exiftool has many messages for that."""
    try:
        photo = Path(named_path).resolve()
        return shutil.disk_usage(photo.parent).free < photo.stat().st_size + _METADATA
    except OSError:
        return False


def disk_full(named_path: str) -> PhotoError:
    return not_written(named_path, "disk_full", "the disk is full", hint="Free some space.")


def not_written(named_path: str, cause: str, reason: str, hint: str | None = None) -> PhotoError:
    return PhotoError(
        "not_written",
        f"Nothing was written into {named_path}: {reason}.",
        cause=cause,
        reason=reason,
        hint=hint or "The photo is as it was.",
    )


def not_verified(named_path: str, reason: str) -> PhotoError:
    return PhotoError(
        "not_verified",
        f"Nothing was written into {named_path}: {reason}.",
        cause="different",
        reason=reason,
        hint="The photo is as it was. Please report it, with the photo if you can.",
    )
