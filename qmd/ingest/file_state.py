"""The stored state of a file, by which a scan knows without reading it whether it has changed."""

from __future__ import annotations

from pathlib import Path

from qmd.ingest.read_file import ReadFile
from qmd.ingest.scan import ScannedFile
from qmd.values import FileState

#: A file that was written within this time before it was read may be written again without
#: its time changing: the clock of most file systems ticks in milliseconds, of some in seconds.
TICK_NS = 20_000_000
COARSE_TICK_NS = 2_000_000_000
#: SQLite's integers have 63 bits and a sign; inodes have 64, on some systems 128, and times may
#: lie beyond the year 2262.
LARGEST = (1 << 63) - 1


def file_state(file: ScannedFile | ReadFile) -> FileState:
    """What is stored of a file, to know it again."""
    return FileState(
        file.size,
        min(max(file.mtime_ns, -LARGEST), LARGEST),
        file.inode & LARGEST,
        file.device & LARGEST,
    )


def settled(state: FileState, started: int) -> FileState:
    """
    The file's state, or one that equals none where the file had been written just before it
    was read (``started``): then it is read once more next time, because a second change may
    carry the same time.
    """
    tick = COARSE_TICK_NS if state.mtime_ns % 1_000_000_000 == 0 else TICK_NS
    return state._replace(inode=-1) if started - state.mtime_ns < tick else state


def is_still(file: Path, state: FileState) -> bool:
    """Whether a file is as it was, or may be."""
    try:
        status = file.lstat()
    except OSError:
        return False
    now = FileState(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)
    # Of a file that was read right after it was written the inode is not in the state.
    return (now.bytes, now.mtime_ns) == (state.bytes, state.mtime_ns) and (
        state.inode in (-1, now.inode & LARGEST)
    )
