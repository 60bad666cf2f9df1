"""Query → hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search import (
        budget,
        meaning,
        ordering,
        photos,
        question,
        rank,
        retrieve,
        searches,
        spelling,
    )

__all__ = [
    "budget",
    "meaning",
    "ordering",
    "photos",
    "question",
    "rank",
    "retrieve",
    "searches",
    "spelling",
]

__getattr__ = lazy.load(__name__, modules=__all__)
