"""Keep the index in line with the disk, in one process of all that have the database open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.ingest.keep import background_embedding, follower, freshness, keeper, lock, maintain

__all__ = ["background_embedding", "follower", "freshness", "keeper", "lock", "maintain"]

__getattr__ = lazy.load(__name__, modules=__all__)
