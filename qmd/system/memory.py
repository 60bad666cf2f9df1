"""The memory of a process that runs for long."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from collections.abc import Callable
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
    set_option = _function("mallopt")
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
    give_back()


def give_back() -> None:
    """
    Let the system have what was freed, which glibc keeps between what is in use.

    Threads that store many documents leave more of it with each transaction.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def _function(name: str) -> Callable[..., int] | None:
    """A function of glibc; None elsewhere: musl has none of these."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), name, None)
