"""The memory of a process that runs for long."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from pathlib import Path

#: ``M_TRIM_THRESHOLD`` of mallopt(3), and how many free bytes the heap may keep at its end: what
#: glibc keeps until it has freed a large block, after which it keeps up to 64 MB.
_TRIM_THRESHOLD, _KEPT_BYTES = -1, 128 * 1024


def available_bytes(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """
    The memory that a program may still take, in this container too; None where that is unknown.

    Args:
        proc, cgroup: Where Linux tells.
    """
    line = re.search(r"^MemAvailable: +(\d+) kB$", _text(proc / "meminfo"), re.MULTILINE)
    of_machine = [int(line[1]) * 1024] if line else []
    limit, used = _text(cgroup / "memory.max"), _text(cgroup / "memory.current")
    if limit.strip().isdigit() and used.strip().isdigit():
        # What is held of files is given back at need.
        held = re.search(r"^inactive_file (\d+)$", _text(cgroup / "memory.stat"), re.MULTILINE)
        of_machine.append(int(limit) - int(used) + (int(held[1]) if held else 0))
    return min(of_machine, default=None)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def settle() -> None:
    """
    Let a process that has started keep less memory, and look at less of it for garbage.

    What it has made until now stays, so no later collection visits it; and with glibc, memory that
    searches have freed goes back to the system. Nothing else changes elsewhere.
    """
    gc.collect()
    gc.freeze()
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    set_option, trim = (getattr(library, name, None) for name in ("mallopt", "malloc_trim"))
    if set_option is not None and trim is not None:  # as musl has none
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
        trim(0)
