"""Retrieval by meaning, from vectors; its modules need numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.meaning import loaded_vectors as loaded_vectors
    from qmd.search.meaning import nearness as nearness
    from qmd.search.meaning import retrieval as retrieval
    from qmd.search.meaning import vector_cache as vector_cache

__getattr__ = lazy.load(__name__)
