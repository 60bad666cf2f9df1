"""Counts changes of the vectors in ``z_meta``, so that processes notice stale copies."""

from __future__ import annotations

from qmd.store.postgres import meta
from qmd.store.postgres.library import Connection

KEY = "vectors"


def read(connection: Connection) -> tuple[int, int]:
    """
    The first number grows when vectors that a process holds may differ, the second when some
    came or went. Chunks that were deleted by hand do not count.
    """
    epoch, _, count = (meta.read(connection, KEY) or "0:0").partition(":")
    return int(epoch), int(count)


def advance(connection: Connection, *, remade: bool = False) -> None:
    """Call this in the transaction of every change; ``remade``: vectors that exist may differ."""
    epoch, count = read(connection)
    meta.put(connection, KEY, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")
