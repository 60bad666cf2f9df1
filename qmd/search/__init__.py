"""
Query → hits.

Its modules that few searches need can be used as attributes, and are loaded when they first are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search import budget, meaning, ordering, rank, retrieve, spelling

__all__ = ["budget", "meaning", "ordering", "rank", "retrieve", "spelling"]

__getattr__ = lazy.load(__name__, modules=__all__)
