"""Counts changes of the vectors in ``z_meta``, so that processes notice stale copies."""

from __future__ import annotations

from qmd.store.sql import Sql
from qmd.store.sql.meta import Meta, MetaWriter

KEY = "vectors"


def read(sql: Sql) -> tuple[int, int]:
    """
    The first number grows when vectors that a process holds may differ, the second when some
    came or went. Chunks that were deleted by hand do not count.
    """
    epoch, _, count = (Meta(sql).get(KEY) or "0:0").partition(":")
    return int(epoch), int(count)


def advance(sql: Sql, *, remade: bool = False) -> None:
    """Call this in the transaction of every change; ``remade``: vectors that exist may differ."""
    epoch, count = read(sql)
    MetaWriter(sql).put(KEY, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")
