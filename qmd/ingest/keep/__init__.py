"""Keep the index in line with the disk, in one process of all that have the database open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.ingest.keep import background as background
    from qmd.ingest.keep import freshness as freshness
    from qmd.ingest.keep import keeper as keeper
    from qmd.ingest.keep import loop as loop
    from qmd.ingest.keep import maintain as maintain

__getattr__ = lazy.load(__name__)
