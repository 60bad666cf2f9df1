"""The memory of a process that runs for long."""

from __future__ import annotations

import ctypes
import gc
import sys

#: ``M_TRIM_THRESHOLD`` of mallopt(3), and how many free bytes the heap may keep at its end: what
#: glibc keeps until it has freed a large block, after which it keeps up to 64 MB.
_TRIM_THRESHOLD, _KEPT_BYTES = -1, 128 * 1024


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
