"""In which order new rows are stored: PostgreSQL keeps long texts apart, so as they come."""

from __future__ import annotations

from collections.abc import Sequence


def filling_order(rows: Sequence[Sequence[object]]) -> Sequence[int]:
    """As `qmd.store.sqlite.pages.filling_order`."""
    return range(len(rows))
