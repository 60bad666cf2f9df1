"""Retrieval by meaning, from vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.meaning import saved_codes, vector_cache

__all__ = ["saved_codes", "vector_cache"]

__getattr__ = lazy.load(__name__, modules=__all__)
