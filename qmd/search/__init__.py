"""Query → hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search import listing, ordering, photos, question, searches, spelling

__all__ = ["listing", "ordering", "photos", "question", "searches", "spelling"]

__getattr__ = lazy.load(__name__, modules=__all__)
