"""Compare the state of a file with the stored one, to see without reading whether it changed."""

from __future__ import annotations

from pathlib import Path

from qmd.ingest.read_file import ReadFile
from qmd.ingest.scan import ScannedFile
from qmd.values import FileState

#: If a file was written less than this many nanoseconds before it was read, a second write may
#: leave its time as it is: most file systems have a clock of milliseconds, some of seconds.
TICK_NS = 20_000_000
COARSE_TICK_NS = 2_000_000_000
#: SQLite's integers have 63 bits and a sign; inodes have 64, on some systems 128, and times may
#: lie beyond the year 2262.
LARGEST = (1 << 63) - 1


def file_state(file: ScannedFile | ReadFile) -> FileState:
    """The state of a file, in the form that is stored."""
    return FileState(
        file.size,
        min(max(file.mtime_ns, -LARGEST), LARGEST),
        file.inode & LARGEST,
        file.device & LARGEST,
    )


def settled(state: FileState, started: int) -> FileState:
    """
    Return the state, or one that equals no other if the file was written just before it was read.

    In the second case the next scan reads the file again, because a second change may have the
    same time.

    Args:
        started: When the file was read, in nanoseconds since 1970.
    """
    tick = COARSE_TICK_NS if state.mtime_ns % 1_000_000_000 == 0 else TICK_NS
    return state._replace(inode=-1) if started - state.mtime_ns < tick else state


def is_still(file: Path, state: FileState) -> bool:
    """Whether a file has this state, as far as can be said."""
    try:
        status = file.lstat()
    except OSError:
        return False
    now = FileState(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)
    # The state has no inode (-1) if the file was read right after it was written.
    return (now.bytes, now.mtime_ns) == (state.bytes, state.mtime_ns) and (
        state.inode in (-1, now.inode & LARGEST)
    )
