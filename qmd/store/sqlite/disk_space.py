"""Says before a long job begins whether the disk has room for it."""

from __future__ import annotations

import os
from pathlib import Path

from qmd import libraries
from qmd.errors import DiskFullError

#: Smaller needs are not checked: the job takes a moment, and fails cleanly.
LEAST_CHECKED = 64 << 20


def require_free(needs: dict[Path, int], job: str) -> None:
    """
    Check that directories have room; those on one disk share it.

    Args:
        needs: Directory → bytes that the job will write there.
        job: The subject of the error's sentence, such as "A copy".

    Raises:
        DiskFullError: A disk has too little room; nothing was written.
    """
    by_disk: dict[int, tuple[Path, int]] = {}
    for directory, needed in needs.items():
        disk = directory.stat().st_dev
        first, sum_needed = by_disk.get(disk, (directory, 0))
        by_disk[disk] = first, sum_needed + needed
    for directory, needed in by_disk.values():
        if needed < LEAST_CHECKED:
            continue
        free = libraries.shutil.disk_usage(directory).free
        if free < needed:
            raise DiskFullError(
                f"{job} needs {_megabytes(needed)} of free space in {directory},"
                f" which has {_megabytes(free)}. Nothing was changed.",
                hint="Free some space, or use another disk.",
            )


def temporary_directory() -> Path:
    """Where SQLite writes what does not fit into memory: https://sqlite.org/tempfiles.html"""
    named = [os.environ.get(name, "") for name in ("SQLITE_TMPDIR", "TMPDIR")]
    for place in (*named, "/var/tmp", "/usr/tmp", "/tmp"):  # noqa: S108 - SQLite's own list
        if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):  # noqa: PTH112
            return Path(place)
    return Path(libraries.tempfile.gettempdir())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
